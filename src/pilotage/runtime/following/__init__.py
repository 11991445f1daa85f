"""Detects changes that the user makes on the host after the first call, and applies them or reports that it cannot."""
