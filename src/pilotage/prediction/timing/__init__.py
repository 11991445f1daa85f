"""How long a program takes: operations on a kind of device, and what the host and other devices add."""
