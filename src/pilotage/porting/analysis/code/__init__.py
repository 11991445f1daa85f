"""Analysis of Python code: scopes, names, reads and writes of variables, and the origins of values."""
