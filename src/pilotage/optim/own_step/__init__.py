"""Optimizers without a rule of ours: their own step() is captured."""
