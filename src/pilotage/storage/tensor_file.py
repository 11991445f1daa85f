"""The layout of a safetensors file: the length of a JSON header, the header, and the bytes of all tensors.

The safetensors library is not used: it needs all bytes in memory to write a file, and training and compiling must not
depend on it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch

from pilotage.storage.dtypes import STORED_NAMES
from pilotage.storage.json_text import MAXIMUM_TEXT, from_text, to_text, without_repetition
from pilotage.storage.mapped_file import MappedFile

METADATA = "__metadata__"
_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 64
_TYPES = {name: dtype for dtype, name in STORED_NAMES.items()}
_MAXIMUM_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """The type, shape and offset of a tensor in a file."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    """The offset of its first byte from the end of the header."""

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def place_tensors(tensors: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]) -> dict[str, TensorEntry]:
    """Place tensors end to end; the widest types come first, so that all are aligned."""
    entries, start = {}, 0
    for name in sorted(tensors, key=lambda name: -tensors[name][0].itemsize):
        entries[name] = TensorEntry(*tensors[name], start)
        start += entries[name].size
    return entries


def header_bytes(entries: Mapping[str, TensorEntry], metadata: Mapping[str, str]) -> bytes:
    """The header before the tensors."""
    if METADATA in entries:
        raise ValueError(f"a tensor cannot be named {METADATA}")
    described = {name: _description(entry) for name, entry in entries.items()}
    text = to_text({METADATA: dict(metadata), **described}).encode()
    text += b" " * (-(len(text) + _LENGTH.size) % _ALIGNMENT)
    return _LENGTH.pack(len(text)) + text


def read_header(file: MappedFile) -> tuple[dict[str, str], dict[str, TensorEntry], int]:
    """The metadata, the tensors and the offset of their bytes; raises a ValueError if anything is invalid."""
    (length,) = _LENGTH.unpack(file.read(0, _LENGTH.size))
    start = _LENGTH.size + length
    if length > MAXIMUM_TEXT:
        raise ValueError(f"its header should have {length:,} bytes; at most {MAXIMUM_TEXT:,} are allowed")
    if start > file.size:
        raise ValueError(f"its header should have {length:,} bytes, but the file has {file.size:,}")
    header = from_text(file.read(_LENGTH.size, length), without_repetition)
    if not isinstance(header, dict):
        raise ValueError("its header is not a dictionary")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not strings")
    entries = {name: _entry(name, description) for name, description in header.items()}
    _check_places(entries.values(), file.size - start)
    return metadata, entries, start


def _description(entry: TensorEntry) -> dict[str, Any]:
    return {
        "dtype": STORED_NAMES[entry.dtype],
        "shape": list(entry.shape),
        "data_offsets": [entry.start, entry.start + entry.size],
    }


def _entry(name: str, description: Any) -> TensorEntry:
    if not isinstance(description, dict) or set(description) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the description of its tensor {name[:100]} is not type, shape and offsets")
    dtype, shape, places = description["dtype"], description["shape"], description["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise ValueError(f"its tensor {name[:100]} has the unknown type {str(dtype)[:100]}")
    if not is_shape(shape) or not _are_sizes(places) or len(places) != 2:
        raise ValueError(f"its tensor {name[:100]} has an invalid shape or offset")
    entry = TensorEntry(_TYPES[dtype], tuple(shape), places[0])
    if places[1] - places[0] != entry.size:
        raise ValueError(f"its tensor {name[:100]} needs {entry.size:,} bytes but has {places[1] - places[0]:,}")
    return entry


def is_shape(shape: Any) -> TypeGuard[list[int]]:
    """Whether a value from a file is a valid shape."""
    if not _are_sizes(shape) or len(shape) > _MAXIMUM_DIMENSIONS:
        return False
    return math.prod(max(size, 1) for size in shape) < 2**59


def _are_sizes(numbers: Any) -> TypeGuard[list[int]]:
    return isinstance(numbers, list) and all(type(number) is int and 0 <= number < 2**63 for number in numbers)


def _check_places(entries: Iterable[TensorEntry], available: int) -> None:
    """Check that every byte after the header belongs to one tensor."""
    end = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.size)):
        if entry.start != end:
            raise ValueError(f"its tensors overlap or leave a gap at byte {end:,}")
        end += entry.size
    if end != available:
        raise ValueError(f"its tensors should have {end:,} bytes in total, but it has {available:,}")
