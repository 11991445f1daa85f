"""From the bytes of a file to a checked array."""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from examples.datasets.fashion_mnist.files import DataFile
from pilotage.errors import DatasetError

_GZIP_MAGIC = b"\x1f\x8b"


def content_of(stored: bytes, file: DataFile) -> bytes:
    """Decompress ``stored`` if necessary, and verify its checksum."""
    try:
        content = gzip.decompress(stored) if stored.startswith(_GZIP_MAGIC) else stored
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"cut or corrupt ({error})") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DatasetError(
            f"cut or corrupt ({len(content):,} bytes with SHA-256 {digest[:12]}…, expected {file.sha256[:12]}…)"
        )
    return content


def array_of(content: bytes, file: DataFile) -> NDArray[np.uint8]:
    """The IDX content as an array of bytes."""
    # IDX: two zero bytes, 0x08 for unsigned bytes, the number of dimensions, then each as a big-endian word.
    header = struct.pack(f">HBB{len(file.shape)}I", 0, 8, len(file.shape), *file.shape)
    if not content.startswith(header) or len(content) != len(header) + int(np.prod(file.shape)):
        raise DatasetError(f"{file.name} is not an IDX file of shape {file.shape}.")
    return np.frombuffer(content, np.uint8, offset=len(header)).reshape(file.shape)
