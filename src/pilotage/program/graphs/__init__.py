"""Tools for captured graphs: rewrites, aliases, labels, and graphs as straight-line Python."""
