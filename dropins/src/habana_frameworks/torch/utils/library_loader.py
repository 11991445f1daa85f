"""Starts the bridge in older scripts."""

from __future__ import annotations

from importlib import import_module


def load_habana_module() -> None:
    """Register the device, if the import has not done it already."""
    import_module("habana_frameworks.torch.hpu")


def is_habana_available() -> bool:
    """Whether the device can be used; the emulated one always can."""
    return True


def load_habana_profiler() -> None:
    """Do nothing: the vendor's profiler needs the card."""
