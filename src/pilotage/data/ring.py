"""A ring of equal chunks of memory that two processes share; each chunk holds the tensors of one item.

The memory is an anonymous file: it leaves no name behind, the system frees it when the last process that maps it ends,
and a view stays valid for as long as it is referenced.
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
"""The alignment of tensors in bytes, for vector instructions."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """The type, shape and offset of one tensor in every chunk."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.offset + self.dtype.itemsize * torch.Size(self.shape).numel()


@dataclass(frozen=True, slots=True)
class Layout:
    """How the tensors of an item are laid out in a chunk."""

    tensors: tuple[TensorLayout, ...]

    @classmethod
    def like(cls, tensors: Sequence[Tensor], rows: int | None = None) -> Layout:
        """The layout for items like this one, optionally with another number of rows."""
        layouts: list[TensorLayout] = []
        for tensor in tensors:
            shape = tuple(tensor.shape) if rows is None else (rows, *tensor.shape[1:])
            layouts.append(TensorLayout(tensor.dtype, shape, _aligned(layouts[-1].end if layouts else 0)))
        return cls(tuple(layouts))

    @property
    def bytes(self) -> int:
        """Size of one chunk."""
        return max(_aligned(self.tensors[-1].end), _ALIGNMENT)


class Ring:
    """Chunks of one layout in shared memory; does not track which are in use."""

    def __init__(self, descriptor: int, layout: Layout, chunks: int) -> None:
        """Map the anonymous file of ``descriptor``, which the caller may close afterwards."""
        self._layout = layout
        memory = torch.frombuffer(mmap.mmap(descriptor, layout.bytes * chunks), dtype=torch.uint8)
        self._chunks = [_tensors_in(part, layout) for part in memory.split(layout.bytes)]

    def write(self, chunk: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
        """Copy an item to a chunk; returns the number of rows of each tensor."""
        targets = self._chunks[chunk]
        if len(tensors) != len(targets):
            raise InputError(f"The first item has {len(targets)} tensors, a later one {len(tensors)}.")
        return tuple(_copy(tensor.detach(), target) for tensor, target in zip(tensors, targets, strict=True))

    def read(self, chunk: int, rows: Sequence[int]) -> list[Tensor]:
        """Views of the item in a chunk, valid until the chunk is written again."""
        return [
            tensor.narrow(0, 0, count) if tensor.ndim else tensor.detach()
            for tensor, count in zip(self._chunks[chunk], rows, strict=True)
        ]


def anonymous_file(size: int, *, on_disk: bool) -> int:
    """The descriptor of a nameless file of ``size`` bytes, in memory or in the directory for temporary files."""
    if on_disk or not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    else:
        descriptor = os.memfd_create("pilotage-ring")
    try:
        _check_room(size, _space_for(descriptor) if on_disk else _available_memory())
        # Reserve it now: running out of space is an error here, but a fatal signal when first written to.
        os.posix_fallocate(descriptor, 0, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_room(size: int, available: int) -> None:
    # Reserving more memory than available does not fail; the system would kill some process later.
    if size > available:
        raise OSError(
            errno.ENOSPC,
            f"A ring of {size} bytes does not fit into the available {available} bytes. "
            "Reduce the buffer size or the batch size",
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


def _is_exact(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def _copy(tensor: Tensor, target: Tensor) -> int:
    """Copy a tensor, in the type of the first item's; returns its number of rows."""
    rows = tensor.shape[0] if tensor.ndim else 1
    is_alike = target.is_complex() or not tensor.is_complex()
    fits = is_alike and tensor.ndim == target.ndim and tensor.shape[1:] == target.shape[1:]
    part = target.narrow(0, 0, min(rows, target.shape[0])) if target.ndim else target
    if fits and part.shape == tensor.shape:
        part.copy_(tensor)
        # Between floating-point types values are rounded; every other conversion has to keep them.
        is_rounded = not _is_exact(tensor) and not _is_exact(target)
        if tensor.dtype == target.dtype or is_rounded or torch.equal(part.to(tensor.dtype), tensor):
            return rows
    raise InputError(
        f"A later item has a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}, but the first item has one of "
        f"shape {tuple(target.shape)} and {target.dtype}. Later items may only have fewer rows, and values that this "
        "type can hold."
    )


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT
