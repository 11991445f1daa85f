"""Rewrites of graphs that run faster on a card: each is one pass before Inductor."""
