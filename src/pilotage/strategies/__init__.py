"""Where and how a program is spread."""
