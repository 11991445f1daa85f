"""Structures of nested values as plain data.

Custom containers (named tuples, data classes, dictionary subclasses) are written with the name of their class. If the
class is not imported when a program is read, a plain tuple or dictionary is used instead.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.program.structure import Constant, Parsed, Record, Sequence, Structure, Table, TensorLeaf
from pilotage.storage.plain_data import MAXIMUM_DEPTH, array, invalid_value, text

_PLAIN = (bool, int, float, str, type(None))


def structure_to_data(structure: Structure) -> Any:
    """A structure as plain data."""
    match structure:
        case TensorLeaf():
            return {"tensor": None}
        case Constant():
            if not isinstance(structure.value, _PLAIN):
                raise CaptureError(
                    f"A value of type {type(structure.value).__name__} in inputs or outputs cannot be written to a "
                    "file. Pass tensors, numbers, strings and containers of them."
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
        case Parsed() if not structure.count:
            # Left out of what a program takes and returns.
            return {"constant": None}
        case Parsed():
            raise CaptureError(
                f"Objects of type {structure.kind.__name__}, which need a custom parser, cannot be written to a file."
            )


def structure_from_data(data: Any, *, trusted: bool = False, depth: int = 0) -> Structure:
    """Restore a structure from plain data."""
    if not isinstance(data, dict) or len(data) != 1:
        raise invalid_value("a structure", data, "an object with one key")
    if depth > MAXIMUM_DEPTH:
        raise ProgramFileError(f"The program contains a structure that is nested more than {MAXIMUM_DEPTH} deep.")
    read = partial(structure_from_data, trusted=trusted, depth=depth + 1)
    ((kind, content),) = data.items()
    match kind:
        case "tensor":
            return TensorLeaf()
        case "constant":
            return Constant(_plain(content))
        case "sequence":
            name, *items = array(content, "a sequence")
            return Sequence(_sequence_class(name, len(items), trusted), tuple(map(read, items)))
        case "table" | "record":
            name, entries = array(content, "a table", 2)
            return _mapping(name, {_plain(key): read(item) for key, item in array(entries, "the entries of a table")})
    raise ProgramFileError(f"The program contains a structure of the unknown kind {kind!r}.")


def _plain(value: Any) -> Any:
    if not isinstance(value, _PLAIN):
        raise invalid_value("a constant among inputs and outputs", value, "a number, a text, true, false or none")
    return value


def _mapping(name: str, items: dict[Any, Structure]) -> Structure:
    """A plain dictionary: a custom class cannot be constructed without its data."""
    table = dict.fromkeys(items)
    template = OrderedDict(table) if _class(name) is OrderedDict else table
    keys = tuple(sorted(table)) if all(isinstance(key, str) for key in table) else tuple(table)
    return Table(template, keys, tuple(items[key] for key in keys))


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _sequence_class(name: str, length: int, trusted: bool) -> type:
    """A list or tuple class; if its construction runs custom code, only for trusted files."""
    found: Any = _class(name)
    if found is None or not issubclass(found, (tuple, list)):
        return tuple
    if len(getattr(found, "_fields", range(length))) != length:
        return tuple
    if trusted or _is_made_by_python(found):
        return found  # type: ignore[no-any-return]
    return list if issubclass(found, list) else tuple


def _is_made_by_python(kind: Any) -> bool:
    """Whether construction runs no custom code, as for tuple, list, torch.Size and named tuples."""
    if isinstance(kind.__init__, FunctionType) or type(kind).__call__ is not type.__call__:
        return False
    return not isinstance(kind.__new__, FunctionType) or _is_of_named_tuple(kind.__new__.__code__)


def _is_of_named_tuple(code: CodeType) -> bool:
    """Whether ``collections.namedtuple`` generated a constructor; its code does not come from a file."""
    return code.co_filename.startswith("<") and code.co_names == ("_tuple_new",)


def _class(name: str) -> type | None:
    """A class by name, if its module is already imported: reading a file never imports modules."""
    module, _, qualified = text(name, "the name of a class").partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        # Not getattr: modules and classes may run code for missing attributes.
        found = getattr(found, "__dict__", {}).get(part) if isinstance(found, (ModuleType, type)) else None
    return found if isinstance(found, type) else None
