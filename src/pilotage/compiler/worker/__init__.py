"""The compiling process: searches for the fastest right way to run a program."""
