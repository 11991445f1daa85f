"""Every operation and module of torch's own test databases, through PopTorch's wrappers and compared with eager."""
