"""Decompression of one chunk, by the fastest library at hand."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import cast

Inflate = Callable[[bytes, int], bytes]
"""Takes compressed bytes and the number of bytes that they hold."""


class ChunkError(Exception):
    """Bytes that do not decompress."""


def fastest_inflate() -> Inflate:
    """Intel's library where the package ``isal`` is installed, half again as fast; else Python's own."""
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
    """With Python's own zlib."""
    try:
        return zlib.decompress(data, bufsize=size)
    except zlib.error as error:
        raise ChunkError(str(error)) from error
