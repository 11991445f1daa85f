"""The user's options as frozen values, checked once, and the environment variables."""
