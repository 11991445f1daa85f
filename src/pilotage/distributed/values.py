"""Exchange plain values with torch.distributed, without pickle: no process can make another one run code."""

from __future__ import annotations

from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.distributed.value_bytes import from_bytes, to_bytes
from pilotage.errors import DistributedError
from pilotage.torch_private import device_types, get_default_group

__all__ = ["Value", "broadcast_value", "gather_values"]

Value = TypeVar("Value")
"""Plain values and tensors, see `value_bytes`; every process exchanges the same kind."""

_MAX_BYTES = 1 << 36
"""The limit of one value; a larger length can only be an error."""


def gather_values(value: Value, group: dist.ProcessGroup | None = None) -> list[Value]:
    """The value of each process of a group, in order."""
    device, mine = _device(group), to_bytes(value)
    lengths = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(dist.get_world_size(group))]
    dist.all_gather(lengths, torch.tensor([mine.numel()], device=device), group=group)
    sizes = [_checked(length) for length in lengths]
    padded = torch.zeros(max(sizes), dtype=torch.uint8, device=device)
    padded[: mine.numel()] = mine.to(device)
    found = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(found, padded, group=group)
    return [from_bytes(data[:size].to("cpu")) for data, size in zip(found, sizes, strict=True)]


def broadcast_value(value: Value, source: int = 0, group: dist.ProcessGroup | None = None) -> Value:
    """The value of one process, in all of them; ``source`` is its number among all processes."""
    device, is_source = _device(group), dist.get_rank() == source
    mine = to_bytes(value if is_source else None).to(device)
    length = torch.tensor([mine.numel()], device=device)
    dist.broadcast(length, source, group=group)
    data = mine if is_source else torch.empty(_checked(length), dtype=torch.uint8, device=device)
    dist.broadcast(data, source, group=group)
    received: Value = from_bytes(data.to("cpu"))
    return received


def _checked(length: Tensor) -> int:
    size = int(length)
    if not 0 <= size <= _MAX_BYTES:
        raise DistributedError(f"Another process sends a value of {size} bytes. At most {_MAX_BYTES} are accepted.")
    return size


def _device(group: dist.ProcessGroup | None) -> torch.device:
    """The device for the bytes: the CPU, unless the group only supports tensors on cards."""
    kinds = device_types(group or get_default_group())
    host = torch.device("cpu")
    return host if host in kinds else torch.device(kinds[0].type)
