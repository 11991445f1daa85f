"""How a running program gets from its captured graph to compiled code."""
