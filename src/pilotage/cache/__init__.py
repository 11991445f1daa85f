"""Compiled code on disk: folders that are sealed when they are written and checked before they are used."""
