"""PopTorch's options in the engine's terms, and as plain data."""
