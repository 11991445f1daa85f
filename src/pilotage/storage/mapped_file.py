"""A memory-mapped file, opened for reading: only the parts in use are read."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

_CHUNK = 2**20


class MappedFile:
    """The bytes of a regular file; writes to its tensors stay in this process."""

    def __init__(self, handle: int, size: int) -> None:
        self._handle = handle
        self.size = size
        self._map: mmap.mmap | None = None

    def read(self, start: int, count: int) -> bytes:
        """A range of bytes; raises an EOFError if the file ends before."""
        if start + count > self.size:
            raise EOFError(f"it ends at byte {self.size:,}")
        found = bytearray(count)
        self._fill(memoryview(found), start)
        return bytes(found)

    def digest(self, start: int, count: int) -> str:
        """The SHA-256 of a range of bytes, a chunk at a time."""
        digest, chunk = hashlib.sha256(), memoryview(bytearray(min(_CHUNK, count)))
        for place in range(start, start + count, _CHUNK):
            part = chunk[: min(_CHUNK, start + count - place)]
            self._fill(part, place)
            digest.update(part)
        return digest.hexdigest()

    def _fill(self, part: memoryview, start: int) -> None:
        done = 0
        while done < len(part):
            count = os.preadv(self._handle, [part[done:]], start + done)
            if not count:
                raise EOFError(f"it ends at byte {start + done:,}")
            done += count

    def tensor(self, start: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """A range of bytes as a tensor in the mapping, or in a copy if it is not aligned."""
        count = dtype.itemsize
        for size in shape:
            count *= size
        if not count:
            return torch.empty(shape, dtype=dtype)
        if self._map is None:
            self._map = mmap.mmap(
                self._handle, self.size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
            )
        data = torch.frombuffer(self._map, dtype=torch.uint8, count=count, offset=start)
        if start % dtype.itemsize:
            data = data.clone()
        return data.view(dtype).reshape(shape)


@contextlib.contextmanager
def mapped_file(path: Path) -> Iterator[MappedFile]:
    """Open a regular file; raises a ValueError for anything else, without blocking.

    Tensors keep the mapping alive after the file is closed.
    """
    # Without O_NONBLOCK, opening a FIFO waits for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"it is {_kind(status.st_mode)}, not a regular file")
        yield MappedFile(handle, status.st_size)
    finally:
        os.close(handle)


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a directory", stat.S_ISFIFO: "a FIFO", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}
    return next((kind for test, kind in kinds.items() if test(mode)), "a special file")
