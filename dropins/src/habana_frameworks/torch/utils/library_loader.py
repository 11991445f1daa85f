"""How older scripts start the bridge."""

from __future__ import annotations

from importlib import import_module


def load_habana_module() -> None:
    """Make the device known, where importing this has not done it already."""
    import_module("habana_frameworks.torch.hpu")


def is_habana_available() -> bool:
    """Say whether the device can be used: the emulated one always can."""
    return True
