"""Dividing a model over devices: block boundaries that balance time and memory."""
