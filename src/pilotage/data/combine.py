"""Concatenate batches of any structure along their first dimension."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from pilotage.errors import InputError
from pilotage.program.structure import ObjectParser, Parsers, parser_of


def grouped(batches: Iterable[Any], size: int, *, drop_last: bool, parsers: Parsers | None = None) -> Iterator[Any]:
    """Concatenate each ``size`` consecutive batches; a shorter group at the end is dropped or kept."""
    source = iter(batches)
    while group := list(islice(source, size)):
        if len(group) == size or not drop_last:
            yield concatenate(group, parsers)


def concatenate(batches: Sequence[Any], parsers: Parsers | None = None) -> Any:
    """Concatenate batches of the same structure: tensors along dimension 0, containers member by member.

    Lists of plain values, such as strings, which torch's default collation keeps as lists, are appended. An object that
    a parser takes apart becomes one like the last of them. Any other value has to be the same in all batches.
    """
    if len(batches) == 1:
        return batches[0]
    return _Concatenation(parsers or {}).of(batches)


class _Concatenation:
    """Concatenates batches member by member."""

    def __init__(self, parsers: Parsers) -> None:
        self._parsers = parsers

    def of(self, batches: Sequence[Any]) -> Any:
        """One value made of several."""
        first = batches[0]
        if isinstance(first, torch.Tensor):
            return torch.cat(list(batches))
        if (parser := parser_of(first, self._parsers)) is not None:
            return self._objects(batches, parser)
        if isinstance(first, np.ndarray):
            return np.concatenate(list(batches))
        if isinstance(first, MutableMapping):
            return self._mappings(batches)
        if isinstance(first, list | tuple):
            return self._sequences(batches)
        if dataclasses.is_dataclass(first) and not isinstance(first, type):
            return self._records(batches)
        return _common_value(batches)

    def _objects(self, batches: Sequence[Any], parser: ObjectParser) -> Any:
        members = [list(parser.tensors(batch)) for batch in batches]
        if any(len(member) != len(members[0]) for member in members):
            counts = [len(member) for member in members]
            raise InputError(f"Batches to concatenate need the same number of tensors, but have {counts}.")
        return parser.rebuild(batches[-1], iter([torch.cat(tensors) for tensors in zip(*members, strict=True)]))

    def _mappings(self, batches: Sequence[MutableMapping[Any, Any]]) -> MutableMapping[Any, Any]:
        keys = list(batches[0])
        for batch in batches[1:]:
            if set(batch) != set(keys):
                raise InputError(
                    f"Batches to concatenate need the same keys, but one has {keys} and another {list(batch)}."
                )
        # A copy keeps the other attributes of a subclass, such as the factory of a defaultdict.
        joined = copy.copy(batches[0])
        joined.update({key: self.of([batch[key] for batch in batches]) for key in keys})
        return joined

    def _sequences(self, batches: Sequence[Any]) -> Any:
        first = batches[0]
        if isinstance(first, list) and all(_is_plain(value) for batch in batches for value in batch):
            return [value for batch in batches for value in batch]
        if any(len(batch) != len(first) for batch in batches):
            lengths = [len(batch) for batch in batches]
            raise InputError(f"Batches to concatenate need the same number of members, but have {lengths}.")
        members = [self.of(member) for member in zip(*batches, strict=True)]
        return type(first)(*members) if hasattr(first, "_fields") else type(first)(members)

    def _records(self, batches: Sequence[Any]) -> Any:
        joined = copy.copy(batches[0])
        for each in dataclasses.fields(joined):
            object.__setattr__(joined, each.name, self.of([getattr(batch, each.name) for batch in batches]))
        return joined


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bytes | int | float)


def _common_value(batches: Sequence[Any]) -> Any:
    first = batches[0]
    if any(type(value) is not type(first) or value != first for value in batches[1:]):
        raise InputError(
            f"Values of type {type(first).__name__} cannot be concatenated: {batches[:2]}. "
            "Have collate_fn return tensors, or lists with one value per sample."
        )
    return first
