"""Arguments of a graph's operations as plain data.

Types that JSON does not have become objects with one key: ``{"node": 3}``, ``{"dtype": "float32"}``, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.storage.dtypes import dtype_name
from pilotage.storage.plain_data import MAXIMUM_DEPTH, array, dtype, integer, invalid_value, number, table, text

_SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "memory_format": {
        str(value): value
        for value in (
            torch.contiguous_format,
            torch.channels_last,
            torch.channels_last_3d,
            torch.preserve_format,
        )
    },
    "layout": {str(value): value for value in (torch.strided, torch.sparse_coo, torch.sparse_csr)},
    "float": {text: float(text) for text in ("inf", "-inf", "nan")},
}
_DEVICE = re.compile(r"(cpu|cuda|hpu|meta)(:[0-9]{1,3})?", re.ASCII)


def argument_to_data(value: Any, numbers: Mapping[Node, int]) -> Any:
    """An argument as plain data; nodes become numbers."""
    match value:
        case Node():
            return {"node": numbers[value]}
        case float() if value != value or value in (float("inf"), float("-inf")):
            return {"float": str(value)}
        case bool() | int() | float() | str() | None:
            return value
        case tuple():
            return {"tuple": [argument_to_data(item, numbers) for item in value]}
        case list():
            return [argument_to_data(item, numbers) for item in value]
        case dict():
            return {"dict": {str(key): argument_to_data(item, numbers) for key, item in value.items()}}
        case slice():
            return {"slice": [argument_to_data(item, numbers) for item in (value.start, value.stop, value.step)]}
        case torch.dtype():
            return {"dtype": dtype_name(value)}
        case torch.device():
            return {"device": str(value)}
        case torch.memory_format():
            return {"memory_format": str(value)}
        case torch.layout():
            return {"layout": str(value)}
        case complex():
            return {"complex": [value.real, value.imag]}
    raise CaptureError(f"An argument of type {type(value).__name__} cannot be written to a file: {value!r}.")


def argument_from_data(value: Any, made: Sequence[Node], depth: int = 0) -> Any:
    """Restore an argument from plain data; it can only refer to earlier nodes."""
    if depth > MAXIMUM_DEPTH:
        raise ProgramFileError(f"The program contains an argument that is nested more than {MAXIMUM_DEPTH} deep.")
    match value:
        case None | bool() | float():
            return value
        case int():
            return integer(value, "an argument")
        case str():
            return text(value, "an argument")
        case list():
            return [argument_from_data(item, made, depth + 1) for item in array(value, "an argument")]
        case dict() if len(value) == 1:
            ((kind, content),) = value.items()
            return _special(kind, content, made, depth)
    raise invalid_value("an argument", value, "a number, a text, a list, or an object with one key")


def _special(kind: str, content: Any, made: Sequence[Node], depth: int) -> Any:
    match kind:
        case "node":
            return made[integer(content, "the number of a node", 0, len(made) - 1)]
        case "tuple":
            return tuple(argument_from_data(item, made, depth + 1) for item in array(content, "an argument"))
        case "dict":
            return {key: argument_from_data(item, made, depth + 1) for key, item in table(content, "a table").items()}
        case "slice":
            start, stop, step = (argument_from_data(item, made, depth + 1) for item in array(content, "a slice", 3))
            return slice(start, stop, step)
        case "dtype":
            return dtype(content)
        case "device":
            return _device(content)
        case "complex":
            real, imaginary = (number(item, "a complex number") for item in array(content, "a complex number", 2))
            return complex(real, imaginary)
        case "memory_format" | "layout" | "float":
            if not isinstance(content, str) or content not in _SPECIAL[kind]:
                raise invalid_value(f"a {kind}", content, f"one of {', '.join(_SPECIAL[kind])}")
            return _SPECIAL[kind][content]
    raise ProgramFileError(f"The program contains an argument of the unknown kind {kind!r}.")


def _device(name: Any) -> torch.device:
    if not isinstance(name, str) or _DEVICE.fullmatch(name) is None:
        raise invalid_value("a device", name, "cpu, cuda, hpu or meta, with a number if there are several")
    return torch.device(name)
