"""Rules for targets that run a training step as one call."""
