"""What the bridge knows of itself."""

from __future__ import annotations

from habana_frameworks._emulation import lazy


def is_lazy() -> bool:
    """Say whether operations are gathered into graphs."""
    return lazy.mode() == "lazy"
