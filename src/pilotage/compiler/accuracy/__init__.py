"""Whether compiled code and other layouts compute the same as the graph, and how exactly."""
