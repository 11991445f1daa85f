"""Checks that compiled code and other memory layouts compute the same as the graph."""
