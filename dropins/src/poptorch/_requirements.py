"""The checks that PopTorch makes by assertion, made so that they hold under ``python -O`` too."""

from __future__ import annotations


def require(condition: object, message: str) -> None:
    """Raise AssertionError with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)
