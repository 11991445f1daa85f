"""What the distribution of drop-ins does beside carrying vendors' names."""
