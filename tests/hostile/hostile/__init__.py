"""Modified files, and a sandbox to open them in."""
