"""What a program does on any device: operations with their work, and tensors with their lifetimes."""
