"""poptorch."""
