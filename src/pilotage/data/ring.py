"""A ring of equal slots in memory that two processes share, each slot one item of tensors.

The memory is an anonymous file: it has no name that could be left behind, the system frees it with the last process
that maps it, however that process ends, and a view of it stays valid for as long as anyone holds the view.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from pilotage.errors import InputError

_ALIGNMENT = 64
"""Bytes at whose multiples tensors start, so that vector instructions find them aligned."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One tensor's place in every slot of a ring."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + self.dtype.itemsize * torch.Size(self.shape).numel()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tensors of an item lie in a slot."""

    tensors: tuple[Slot, ...]

    @classmethod
    def like(cls, tensors: Sequence[Tensor], rows: int | None = None) -> Layout:
        """The layout for items like this one, or for such items with another number of rows."""
        slots: list[Slot] = []
        for tensor in tensors:
            shape = tuple(tensor.shape) if rows is None else (rows, *tensor.shape[1:])
            slots.append(Slot(tensor.dtype, shape, _aligned(slots[-1].end if slots else 0)))
        return cls(tuple(slots))

    @property
    def bytes(self) -> int:
        """Size of one slot."""
        return max(_aligned(self.tensors[-1].end), _ALIGNMENT)


class Ring:
    """Slots of one layout in shared memory; knows where things lie, not whose turn it is."""

    def __init__(self, descriptor: int, layout: Layout, slots: int) -> None:
        """Map the anonymous file behind ``descriptor``, which the caller may close afterwards."""
        self._layout = layout
        memory = torch.frombuffer(mmap.mmap(descriptor, layout.bytes * slots), dtype=torch.uint8)
        self._slots = [_tensors_in(part, layout) for part in memory.split(layout.bytes)]

    def write(self, slot: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
        """Copy an item into a slot; returns the number of rows of each tensor."""
        places = self._slots[slot]
        if len(tensors) != len(places):
            raise InputError(f"The first item held {len(places)} tensors, a later one {len(tensors)}.")
        return tuple(_copy(tensor.detach(), place) for tensor, place in zip(tensors, places, strict=True))

    def read(self, slot: int, rows: Sequence[int]) -> list[Tensor]:
        """Views of the item in a slot, valid until the slot is written again."""
        return [
            place.narrow(0, 0, count) if place.ndim else place.detach()
            for place, count in zip(self._slots[slot], rows, strict=True)
        ]


def anonymous_file(size: int, *, on_disk: bool) -> int:
    """The descriptor of a file of ``size`` bytes without a name: in memory, or in the directory for temporary files."""
    if on_disk or not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    else:
        descriptor = os.memfd_create("pilotage-ring")
    try:
        _check_room(size, _space_for(descriptor) if on_disk else _available_memory())
        # Reserved at once: running out of space is an error here, and a fatal signal at the first touch otherwise.
        os.posix_fallocate(descriptor, 0, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_room(size: int, available: int) -> None:
    # Reserving memory that is not there does not fail: it takes what others need until the system kills someone.
    if size > available:
        raise OSError(
            errno.ENOSPC,
            f"A ring of {size} bytes does not fit into the {available} bytes of space that are left. "
            "Lower the buffer size or the batch size",
        )


def _space_for(descriptor: int) -> int:
    disk = os.fstatvfs(descriptor)
    return disk.f_bavail * disk.f_frsize


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _tensors_in(memory: Tensor, layout: Layout) -> list[Tensor]:
    return [memory[each.offset : each.end].view(each.dtype).view(each.shape) for each in layout.tensors]


def _copy(tensor: Tensor, place: Tensor) -> int:
    fits = tensor.ndim == place.ndim and tensor.shape[1:] == place.shape[1:] and tensor.dtype == place.dtype
    rows = tensor.shape[0] if tensor.ndim else 1
    if not fits or (tensor.ndim and rows > place.shape[0]):
        raise InputError(
            f"A tensor of shape {tuple(tensor.shape)} and {tensor.dtype} came where the first item held one of shape "
            f"{tuple(place.shape)} and {place.dtype}. Later items may be shorter in their first dimension, nothing else."
        )
    (place.narrow(0, 0, rows) if place.ndim else place).copy_(tensor)
    return rows


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT
