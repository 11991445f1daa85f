"""The compiling process: searches for the fastest correct way to run a program."""
