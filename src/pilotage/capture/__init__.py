"""Turns a module, its loss and its optimizer into a program."""
