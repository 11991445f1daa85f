"""The older top-level package of the device, whose functions are those of ``torch.hpu``."""

from __future__ import annotations

import warnings

from habana_frameworks.torch import hpu


def is_available() -> bool:
    """Whether the device can be used."""
    _warn("is_available")
    return hpu.is_available()


def device_count() -> int:
    """Return the number of cards of this process."""
    _warn("device_count")
    return hpu.device_count()


def get_device_name(device: hpu.Device = None) -> str:
    """Return the name of the card."""
    _warn("get_device_name")
    return hpu.get_device_name(device)


def _warn(name: str) -> None:
    warnings.warn(f"torch_hpu.{name} is deprecated. Use torch.hpu.{name}.", DeprecationWarning, stacklevel=3)
