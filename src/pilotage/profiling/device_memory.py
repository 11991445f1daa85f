"""Memory in use on a device."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pilotage.profiling.clocks import has_queue

__all__ = ["Holding", "LiveTensors", "allocated_bytes", "capacity_of", "peak_bytes", "restart_peak"]


@dataclass(frozen=True, slots=True)
class Holding:
    """A tensor that is in memory."""

    name: str
    bytes: int
    category: str
    module: str = ""
    line: str | None = None


class LiveTensors:
    """Follows the memory of tensors from when they are first seen until torch frees it."""

    def __init__(self) -> None:
        self._holdings: dict[int, tuple[weakref.ref[torch.UntypedStorage], Holding]] = {}
        self.total = 0
        self.sums: dict[str, int] = {}
        """Bytes of each category at present."""

    def add(self, tensor: Tensor, name: str, category: str, module: str = "", line: str | None = None) -> bool:
        """Follow the memory of a tensor; False if it is followed already, as that of a view is."""
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self._holdings or not storage.nbytes():
            return False
        size = storage.nbytes()
        self._holdings[key] = (
            weakref.ref(storage, lambda _: self._freed(key)),
            Holding(name, size, category, module, line),
        )
        self._count(category, size)
        return True

    def rename(self, tensor: Tensor, name: str, category: str) -> None:
        """Move followed memory to another category."""
        key = id(tensor.untyped_storage())
        found = self._holdings.get(key)
        if found is None:
            self.add(tensor, name, category)
            return
        self._count(found[1].category, -found[1].bytes)
        self._holdings[key] = (found[0], replace(found[1], name=name, category=category))
        self._count(category, found[1].bytes)

    def _count(self, category: str, size: int) -> None:
        self.total += size
        self.sums[category] = self.sums.get(category, 0) + size

    def _freed(self, key: int) -> None:
        found = self._holdings.pop(key, None)
        if found is not None:
            self._count(found[1].category, -found[1].bytes)

    def holdings(self) -> list[Holding]:
        """All tensors at present."""
        return [holding for _, holding in list(self._holdings.values())]


def allocated_bytes(device: torch.device) -> int | None:
    """The memory that torch has allocated on a card; None for devices where torch does not count it."""
    return int(torch.accelerator.memory_allocated(device)) if has_queue(device) else None


def restart_peak(device: torch.device) -> None:
    """Forget the highest amount so far."""
    if has_queue(device):
        torch.accelerator.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int | None:
    """The highest amount since `restart_peak`; None for devices where torch does not count it."""
    return int(torch.accelerator.max_memory_allocated(device)) if has_queue(device) else None


def capacity_of(device: torch.device) -> int | None:
    """The memory of a card; None for a processor, which shares that of the machine."""
    if has_queue(device) and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(device).total_memory)
    return None
