"""Exchanging plain values by torch.distributed, without pickle: no process can make another one run code."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.distributed.value_bytes import from_bytes, to_bytes
from pilotage.errors import DistributedError

__all__ = ["broadcast_value", "gather_values"]

_LARGEST = 1 << 36
"""Bytes of one value; a length above it can only be wrong."""


def gather_values(value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """What each process of a group has here, in their order: plain values and tensors, see `plain_data`."""
    device, mine = _device(group), to_bytes(value)
    lengths = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(dist.get_world_size(group))]
    dist.all_gather(lengths, torch.tensor([mine.numel()], device=device), group=group)
    sizes = [_checked(length) for length in lengths]
    padded = torch.zeros(max(sizes), dtype=torch.uint8, device=device)
    padded[: mine.numel()] = mine.to(device)
    found = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(found, padded, group=group)
    return [from_bytes(data[:size].to("cpu")) for data, size in zip(found, sizes, strict=True)]


def broadcast_value(value: Any, source: int = 0, group: dist.ProcessGroup | None = None) -> Any:
    """What one process has here, everywhere; ``source`` is its number among all processes."""
    device, speaks = _device(group), dist.get_rank() == source
    mine = to_bytes(value if speaks else None).to(device)
    length = torch.tensor([mine.numel()], device=device)
    dist.broadcast(length, source, group=group)
    data = mine if speaks else torch.empty(_checked(length), dtype=torch.uint8, device=device)
    dist.broadcast(data, source, group=group)
    return from_bytes(data.to("cpu"))


def _checked(length: Tensor) -> int:
    size = int(length)
    if not 0 <= size <= _LARGEST:
        raise DistributedError(f"Another process sends a value of {size} bytes. At most {_LARGEST} are accepted.")
    return size


def _device(group: dist.ProcessGroup | None) -> torch.device:
    """Where the bytes have to lie: on the host, unless the group carries tensors of a card only."""
    kinds = (group or dist.distributed_c10d._get_default_group())._device_types
    host = torch.device("cpu")
    return host if host in kinds else torch.device(kinds[0].type)
