"""How older scripts start the bridge."""

from __future__ import annotations

from habana_frameworks._emulation.device import activate


def load_habana_module() -> None:
    """Make the device known, which importing this has done already."""
    activate()


def is_habana_available() -> bool:
    """Say whether the device can be used: the emulated one always can."""
    return True
