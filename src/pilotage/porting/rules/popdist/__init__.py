"""Rules for PopDist: several instances of one script."""
