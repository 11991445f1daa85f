"""Torch's automatic mixed precision around a program."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast_type(device: str) -> torch.dtype | None:
    """The type that autocast turns operations of a kind of device into right now; None where it is off."""
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def without_autocast(device: str) -> AbstractContextManager[object]:
    """Switch autocast off, where it is on: for what is captured already, and for backward and update."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()
