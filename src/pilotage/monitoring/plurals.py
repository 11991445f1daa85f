"""Counts with a noun."""

from __future__ import annotations


def pluralized(number: int, noun: str) -> str:
    """``1 card``, ``2 cards``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
