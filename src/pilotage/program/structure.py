"""Flattens nested values into tensors, and rebuilds them.

Programs take and return flat lists of tensors. Users pass and return tuples, dictionaries, data classes and their own
objects; a `Structure` describes such a value and holds everything in it that is not a tensor.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import numpy
from torch import Tensor


class ObjectParser(Protocol):
    """Flattens and rebuilds objects of a custom type."""

    def tensors(self, value: Any) -> Iterable[Tensor]:
        """The tensors of a value, always in the same order."""
        ...

    def rebuild(self, original: Any, tensors: Iterator[Tensor]) -> Any:
        """A value like the original with these tensors."""
        ...


Parsers: TypeAlias = Mapping[type, ObjectParser]


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    """A tensor."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Anything that is not a tensor; compiled into the program."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and _same(self.value, other.value)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list, a tuple, or a subclass of either, such as a named tuple."""

    kind: type
    items: tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A dictionary or a subclass of it; the order of keys does not matter for equality."""

    template: Any = dataclasses.field(compare=False, repr=False)
    keys: tuple[Any, ...]
    items: tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A data class instance."""

    template: Any = dataclasses.field(compare=False, repr=False)
    kind: type
    keys: tuple[str, ...]
    items: tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """An object that a registered parser flattens."""

    template: Any = dataclasses.field(compare=False, repr=False)
    parser: ObjectParser = dataclasses.field(compare=False, repr=False)
    kind: type
    count: int


Structure: TypeAlias = TensorLeaf | Constant | Sequence | Table | Record | Parsed

_LEAF = TensorLeaf()


def flatten(value: Any, parsers: Parsers | None = None) -> tuple[list[Tensor], Structure]:
    """Flatten a nested value into its tensors, in order, and its structure."""
    tensors: list[Tensor] = []
    structure = _flatten(value, tensors, parsers or {})
    return tensors, structure


def unflatten(structure: Structure, tensors: Iterable[Tensor]) -> Any:
    """Rebuild the nested value with these tensors; an iterator is advanced by as many as the structure holds."""
    left = iter(tensors)
    match structure:
        case TensorLeaf():
            return next(left)
        case Constant():
            return structure.value
        case Sequence():
            items = [unflatten(item, left) for item in structure.items]
            make: Callable[..., Any] = structure.kind
            return make(*items) if hasattr(make, "_fields") else make(items)
        case Table():
            values = {key: unflatten(item, left) for key, item in zip(structure.keys, structure.items, strict=True)}
            table = copy.copy(structure.template)
            for key in structure.template:
                table[key] = values[key]
            return table
        case Record():
            record = copy.copy(structure.template)
            for name, item in zip(structure.keys, structure.items, strict=True):
                object.__setattr__(record, name, unflatten(item, left))
            return record
        case Parsed():
            return structure.parser.rebuild(structure.template, left)


def rebuilder(structure: Structure) -> Callable[[list[Tensor]], Any]:
    """A function like `unflatten` for one structure; a tensor or a plain tuple of tensors needs no walk over it."""
    match structure:
        case TensorLeaf():
            return itemgetter(0)
        case Sequence(kind=kind, items=(_, _, *_) as items) if kind is tuple and all(map(_is_leaf, items)):
            return itemgetter(*range(len(items)))
        case _:
            return partial(unflatten, structure)


def _is_leaf(structure: Structure) -> bool:
    return isinstance(structure, TensorLeaf)


def count_tensors(structure: Structure) -> int:
    """How many tensors a structure holds."""
    match structure:
        case TensorLeaf():
            return 1
        case Constant():
            return 0
        case Parsed():
            return structure.count
        case _:
            return sum(map(count_tensors, structure.items))


def tensor_paths(structure: Structure, path: str) -> Iterator[str]:
    """Each tensor of a structure as a user would write it, such as ``batch['image'][0]``."""
    match structure:
        case TensorLeaf():
            yield path
        case Sequence():
            for position, item in enumerate(structure.items):
                yield from tensor_paths(item, f"{path}[{position}]")
        case Table():
            for key, item in zip(structure.keys, structure.items, strict=True):
                yield from tensor_paths(item, f"{path}[{key!r}]")
        case Record():
            for key, item in zip(structure.keys, structure.items, strict=True):
                yield from tensor_paths(item, f"{path}.{key}")
        case Parsed():
            yield from (f"{path}<{position}>" for position in range(structure.count))


def split_arguments(call: Structure) -> tuple[Sequence, Table]:
    """The positional and the keyword arguments of a call."""
    assert isinstance(call, Sequence)
    positional, named = call.items
    assert isinstance(positional, Sequence)
    assert isinstance(named, Table)
    return positional, named


def plain_tensors(call: Structure) -> int | None:
    """The number of arguments of a call if all are positional tensors, otherwise None."""
    positional, named = split_arguments(call)
    is_plain = not named.items and all(map(_is_leaf, positional.items))
    return len(positional.items) if is_plain else None


def call_paths(call: Structure, names: list[str]) -> Iterator[str]:
    """The name of each tensor of a call as a user would write it."""
    positional, named = split_arguments(call)
    for position, item in enumerate(positional.items):
        yield from tensor_paths(item, names[position] if position < len(names) else f"args[{position}]")
    for key, item in zip(named.keys, named.items, strict=True):
        yield from tensor_paths(item, str(key))


def _flatten(value: Any, tensors: list[Tensor], parsers: Parsers) -> Structure:
    if isinstance(value, Tensor):
        tensors.append(value)
        return _LEAF
    if parsers and (parser := parser_of(value, parsers)) is not None:
        found = list(parser.tensors(value))
        tensors.extend(found)
        return Parsed(template=value, parser=parser, kind=type(value), count=len(found))
    if isinstance(value, (tuple, list)):
        return Sequence(type(value), tuple(_flatten(item, tensors, parsers) for item in value))
    if isinstance(value, dict):
        keys = _sorted(value)
        # The user's dictionary may change later, and would keep its tensors alive.
        template = dict.fromkeys(value) if type(value) is dict else copy.copy(value)
        return Table(template, keys, tuple(_flatten(value[key], tensors, parsers) for key in keys))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value))
        items = tuple(_flatten(getattr(value, name), tensors, parsers) for name in names)
        return Record(value, type(value), names, items)
    return Constant(value)


def _same(one: Any, other: Any) -> bool:
    """Whether a program compiled for one value is valid for the other; 1, 1.0 and True differ."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and one != one:
        return bool(other != other)
    if isinstance(one, numpy.ndarray):
        return bool(one.dtype == other.dtype and numpy.array_equal(one, other))
    try:
        return bool(one == other)
    except Exception:
        return False


def _sorted(table: dict[Any, Any]) -> tuple[Any, ...]:
    """The keys in an order independent of insertion."""
    try:
        return tuple(sorted(table))
    except TypeError:
        return tuple(table)


def parser_of(value: Any, parsers: Parsers) -> ObjectParser | None:
    """The parser of a value: that of its exact type, else the first one registered for a base class."""
    if (exact := parsers.get(type(value))) is not None:
        return exact
    return next((parser for kind, parser in parsers.items() if isinstance(value, kind)), None)
