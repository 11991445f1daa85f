"""Checks of device arguments."""

from __future__ import annotations

import torch

Device = torch.device | str | int | None


def check_device(device: Device) -> None:
    """Raise an error for anything but the one emulated card."""
    if index_of(device) not in (None, 0, -1):
        raise RuntimeError(f"There is one emulated Gaudi card, number 0, but {device!r} was given.")


def index_of(device: Device) -> int | None:
    """Return the number in a device, None if it has none."""
    if device is None or isinstance(device, int):
        return device
    place = torch.device(device)
    if place.type != "hpu":
        raise ValueError(f"An hpu device was expected; {device!r} was given. Use 'hpu' or 'hpu:0'.")
    return place.index
