"""The device ``hpu`` without the card: kernels and memory of another device under its name."""
