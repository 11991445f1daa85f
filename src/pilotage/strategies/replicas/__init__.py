"""Replicas of a program side by side on several cards of one process."""
