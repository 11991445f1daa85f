"""What runs inside a watched process: hooks that record what a script trains, and with what."""
