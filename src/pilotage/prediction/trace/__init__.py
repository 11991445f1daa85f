"""A program independently of devices: operations with their work, and tensors with their lifetimes."""
