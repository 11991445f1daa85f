"""The memory of a device."""

from __future__ import annotations

import torch

from pilotage.monitoring.processor import memory_of

_UNKNOWN = 1 << 62
"""More than any machine has; used if the amount of free memory is unknown."""


def free_memory(device: torch.device) -> int:
    """The bytes that are free on a device, or on the host if the device has no memory of its own."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # Memory that torch has reserved and does not use is free as well.
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    total, free = memory_of()
    return free if total else _UNKNOWN


def wait_for(device: torch.device) -> None:
    """Wait until a device has completed its queued work."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()
