"""Functions and modules of torch that need special handling during capture."""
