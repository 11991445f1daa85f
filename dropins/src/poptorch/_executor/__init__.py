"""Parts of the wrapped model: calls, weights, optimizer, random state, and its files."""
