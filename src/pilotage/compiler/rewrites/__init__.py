"""Other ways of computing the same, which a card likes better. Each is one pass over the graph that Inductor gets."""
