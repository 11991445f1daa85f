"""Pilotage."""
