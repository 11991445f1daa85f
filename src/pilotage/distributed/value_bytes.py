"""Encode values as bytes that cannot run code when decoded.

Supported: None, booleans, numbers, strings, bytes, lists, tuples, sets, dictionaries, NumPy arrays and numbers, torch
dtypes and dense tensors, in any nesting. Tensors arrive contiguous and on the host. The sender refuses other types.
The bytes are the length of a JSON text, the text, and the raw contents of arrays and tensors in order.
"""

from __future__ import annotations

import json
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch
from torch import Tensor

from pilotage.errors import DistributedError

__all__ = ["from_bytes", "to_bytes"]

_MAX_DEPTH = 100
_LENGTH = struct.Struct("<Q")
_DTYPES = {str(found): found for name in dir(torch) if isinstance(found := getattr(torch, name), torch.dtype)}
_ARRAY_KINDS = "biufc"
_SUPPORTED = (
    "None, booleans, numbers, strings, bytes, lists, tuples, sets, dictionaries, NumPy arrays, torch dtypes "
    "and dense tensors"
)


def to_bytes(value: Any) -> Tensor:
    """Encode a value as a tensor of bytes."""
    contents: list[Tensor] = []
    tree = _packed(value, contents, 0)
    text = json.dumps([tree, [content.numel() for content in contents]]).encode()
    return torch.cat([_from_buffer(_LENGTH.pack(len(text)) + text), *contents])


def from_bytes(data: Tensor) -> Any:
    """Decode what `to_bytes` returned; anything else raises `DistributedError`."""
    try:
        return _read(data)
    except (ValueError, TypeError, KeyError, IndexError, RuntimeError, RecursionError, struct.error) as error:
        raise DistributedError(f"Another process sent data that cannot be read: {error}") from error


def _read(data: Tensor) -> Any:
    start = _LENGTH.size
    (length,) = _LENGTH.unpack(bytes(data[:start].tolist()))
    if length > data.numel() - start:
        raise ValueError("its text is longer than the message")
    tree, sizes = json.loads(data[start : start + length].numpy().tobytes())
    if any(type(size) is not int or size < 0 for size in sizes) or start + length + sum(sizes) != data.numel():
        raise ValueError("its parts do not add up to the message")
    # Copies are aligned for their type, and do not keep the whole message alive.
    parts = [part.clone() for part in data[start + length :].split(sizes)] if sizes else []
    return _unpacked(tree, parts)


def _packed(value: Any, contents: list[Tensor], depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise DistributedError(f"A value nested more than {_MAX_DEPTH} levels deep cannot be sent to other processes.")

    def all_of(items: Iterable[Any]) -> list[Any]:
        return [_packed(item, contents, depth + 1) for item in items]

    def content(tensor: Tensor) -> int:
        contents.append(tensor.reshape(-1).view(torch.uint8))
        return len(contents) - 1

    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in _SEQUENCES:
        return [_SEQUENCES[kind], *all_of(value)]
    if kind in _MAPPINGS:
        return [_MAPPINGS[kind], all_of(value.keys()), all_of(value.values())]
    if kind is complex:
        return ["complex", value.real, value.imag]
    if kind in (bytes, bytearray):
        return [kind.__name__, content(_from_buffer(value))]
    if kind is torch.dtype:
        return ["dtype", str(value)]
    if isinstance(value, numpy.ndarray | numpy.generic) and value.dtype.kind in _ARRAY_KINDS:
        index = content(_from_buffer(value.tobytes()))
        return ["array" if isinstance(value, numpy.ndarray) else "number", index, value.dtype.str, list(value.shape)]
    if isinstance(value, Tensor) and value.layout is torch.strided and not value.is_quantized:
        dense = value.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
        return ["tensor", content(dense), str(dense.dtype), list(dense.shape)]
    raise DistributedError(
        f"A value of type {kind.__module__}.{kind.__qualname__} cannot be sent to other processes. Send {_SUPPORTED}."
    )


def _unpacked(tree: Any, parts: list[Tensor]) -> Any:
    if not isinstance(tree, list):
        if isinstance(tree, dict):
            raise ValueError("it holds a JSON object")
        return tree
    tag, *rest = tree
    if tag in _MADE_OF_ITEMS:
        return _MADE_OF_ITEMS[tag](_unpacked(item, parts) for item in rest)
    if tag in _MADE_OF_PAIRS:
        keys, values = ([_unpacked(item, parts) for item in items] for items in rest)
        return _MADE_OF_PAIRS[tag](zip(keys, values, strict=True))
    match tree:
        case ["complex", float(real), float(imaginary)]:
            return complex(real, imaginary)
        case ["bytes" | "bytearray", int(index)]:
            found = parts[index].numpy().tobytes()
            return found if tag == "bytes" else bytearray(found)
        case ["dtype", str(name)]:
            return _DTYPES[name]
        case ["tensor", int(index), str(name), list(shape)]:
            return parts[index].view(_DTYPES[name]).reshape(_checked(shape))
        case ["array" | "number", int(index), str(name), list(shape)]:
            dtype = numpy.dtype(name)
            if dtype.kind not in _ARRAY_KINDS:
                raise ValueError(f"it holds an array of {name!r}")
            array = numpy.frombuffer(parts[index].numpy().tobytes(), dtype=dtype).reshape(_checked(shape))
            return array.copy() if tag == "array" else array[()]
    raise ValueError(f"it holds a value of the unknown kind {tag!r}")


def _from_buffer(data: bytes | bytearray) -> Tensor:
    # A writable copy; torch warns about read-only buffers.
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)


def _checked(shape: list[Any]) -> list[int]:
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"it holds the shape {shape}")
    return shape


_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", torch.Size: "tuple", set: "set", frozenset: "frozenset"}
_MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered"}
_MADE_OF_ITEMS: dict[Any, Callable[..., Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_MADE_OF_PAIRS: dict[Any, Callable[..., Any]] = {"dict": dict, "ordered": OrderedDict}
