"""What the user decided, as frozen values that are checked once."""
