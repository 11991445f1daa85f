"""Decompressing chunks with the fastest installed library."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import cast

Inflate = Callable[[bytes, int], bytes]
"""Takes compressed bytes and their decompressed size."""


class ChunkError(Exception):
    """Bytes that cannot be decompressed."""


def fastest_inflate() -> Inflate:
    """Intel's library, 1.5 times as fast, if the package ``isal`` is installed; else Python's zlib."""
    try:
        from isal import isal_zlib
    except ModuleNotFoundError:
        return python_inflate

    # The package declares its exception class as an instance.
    refused = cast("type[Exception]", isal_zlib.error)

    def inflate(data: bytes, size: int) -> bytes:
        try:
            return bytes(isal_zlib.decompress(data, bufsize=size))
        except refused as error:
            raise ChunkError(str(error)) from error

    return inflate


def python_inflate(data: bytes, size: int) -> bytes:
    """Decompress with Python's zlib."""
    try:
        return zlib.decompress(data, bufsize=size)
    except zlib.error as error:
        raise ChunkError(str(error)) from error
