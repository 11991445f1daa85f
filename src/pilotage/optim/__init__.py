"""Optimizers as update rules on tensors that a captured program can hold."""
