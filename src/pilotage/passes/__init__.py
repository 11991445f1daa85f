"""Passes from a program to another program, one file each."""
