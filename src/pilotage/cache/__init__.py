"""Compiled code on disk: folders that are sealed when written and verified before use."""
