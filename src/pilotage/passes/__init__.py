"""From a program to another program: one file for each pass."""
