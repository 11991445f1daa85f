"""Compares every operation and module of torch's test databases, run through PopTorch's wrappers, with eager."""
