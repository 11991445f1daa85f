"""The mode of the bridge."""

from __future__ import annotations

from habana_frameworks._emulation import lazy


def is_lazy() -> bool:
    """Whether lazy mode is on."""
    return lazy.mode() == "lazy"
