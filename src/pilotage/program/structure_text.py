"""Structures of nested values as plain data.

Containers of the user's own (named tuples, data classes, dictionaries with a class) are written with the name of
their class. Where that class is not importable when a program is read, a plain tuple or dictionary stands in.
"""

from __future__ import annotations

import sys
from typing import Any

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.program.structure import Constant, Parsed, Record, Sequence, Structure, Table, TensorLeaf

_PLAIN = (bool, int, float, str, type(None))


def structure_to_data(structure: Structure) -> Any:
    """A structure as plain data."""
    match structure:
        case TensorLeaf():
            return {"tensor": None}
        case Constant():
            if not isinstance(structure.value, _PLAIN):
                raise CaptureError(
                    f"A value of type {type(structure.value).__name__} among inputs or outputs cannot be written to a file. "
                    "Pass tensors, numbers, strings and containers of them."
                )
            return {"constant": structure.value}
        case Sequence():
            return {"sequence": [_name(structure.kind), *map(structure_to_data, structure.items)]}
        case Table():
            kind = _name(type(structure.template))
            keys = [key for key in structure.template if key in structure.keys]
            items = {key: structure_to_data(structure.items[structure.keys.index(key)]) for key in keys}
            return {"table": [kind, [[key, item] for key, item in items.items()]]}
        case Record():
            items = dict(zip(structure.keys, map(structure_to_data, structure.items), strict=True))
            return {"record": [_name(structure.kind), [[key, item] for key, item in items.items()]]}
        case Parsed():
            raise CaptureError(
                f"Objects of type {structure.kind.__name__}, which a custom parser takes apart, cannot be written to a file."
            )


def structure_from_data(data: Any) -> Structure:
    """The structure that was written as this data."""
    ((kind, content),) = data.items()
    match kind:
        case "tensor":
            return TensorLeaf()
        case "constant":
            return Constant(content)
        case "sequence":
            name, *items = content
            return Sequence(_class(name, tuple), tuple(map(structure_from_data, items)))
        case "table" | "record":
            return _mapping(*content)
    raise ProgramFileError(f"The program holds a structure of the unknown kind {kind!r}.")


def _mapping(name: str, entries: list[list[Any]]) -> Structure:
    """Without its data a class of the user's own cannot be made, so a plain dictionary stands in."""
    table = {key: None for key, _ in entries}
    items = {key: structure_from_data(item) for key, item in entries}
    kind = _class(name, dict)
    template = kind(table) if kind.__module__ in ("builtins", "collections") else table
    keys = tuple(sorted(table)) if all(isinstance(key, str) for key in table) else tuple(table)
    return Table(template, keys, tuple(items[key] for key in keys))


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, otherwise: type) -> type:
    """A container class by name, among what is loaded already: reading a file imports, and so runs, nothing new."""
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, (tuple, list, dict)) else otherwise
