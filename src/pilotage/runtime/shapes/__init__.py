"""Calls of several shapes: one program for each, on the same weights."""
