"""Keeps the memory that a step frees for the next step, instead of returning it to the system.

glibc returns the memory of freed large tensors to the system, and the system clears it again page by page when the next
step writes to it. For a small convolutional network that takes a sixth of a step. So while programs run on the
processor, the process keeps what they free. glibc's own environment variables take precedence.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from pilotage.options import environment

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt: the free memory that a process may keep, and the size that is taken from the system."""

_KEPT = 2**31 - 1
_LARGE = 32 << 20
"""Single tensors beyond this size are still returned to the system: in the heap they would leave gaps that stay unused.
glibc's own adaptation ends at this size too."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory that it frees, for its next step; returns whether the allocator can do that."""
    library = _allocator()
    if library is None or environment.allocator_is_configured():
        return False
    # Setting either of them disables glibc's own adaptation, so both have to be set.
    return bool(library.mallopt(_MMAP_THRESHOLD, _LARGE) and library.mallopt(_TRIM_THRESHOLD, _KEPT))


def release_freed_memory() -> None:
    """Return the kept memory to the system; the next step allocates it again."""
    library = _allocator()
    if library is not None and keep_freed_memory():
        library.malloc_trim(0)


@cache
def _allocator() -> Any:
    """The C library, if it has glibc's functions; None elsewhere."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
