"""Whether the loss changes when a batch is split, and where."""
