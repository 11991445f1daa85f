"""Measures a script on its device: memory and time of each operation, and the timeline of the host."""
