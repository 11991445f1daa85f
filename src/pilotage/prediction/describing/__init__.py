"""Predictions as parts of the document."""
