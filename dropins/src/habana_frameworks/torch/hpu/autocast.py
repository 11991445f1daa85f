"""The state of mixed precision on the card."""

from __future__ import annotations

import torch


def is_autocast_hpu_enabled() -> bool:
    """Whether autocast is on."""
    return torch.is_autocast_enabled("hpu")


def set_autocast_hpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off."""
    torch.set_autocast_enabled("hpu", enabled)


def get_autocast_hpu_dtype() -> torch.dtype:
    """Return the lower precision of autocast."""
    return torch.get_autocast_dtype("hpu")


def set_autocast_hpu_dtype(dtype: torch.dtype) -> None:
    """Set the lower precision of autocast."""
    torch.set_autocast_dtype("hpu", dtype)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the types that autocast supports."""
    return [torch.bfloat16, torch.float16]
