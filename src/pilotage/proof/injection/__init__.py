"""The folder that comes first in PYTHONPATH of a watched command."""
