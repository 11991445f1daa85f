"""The items that can be passed between processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from pilotage.errors import InputError
from pilotage.program.structure import Parsed, Parsers, Structure, Table, TensorLeaf, flatten


def flatten_item(item: Any, parsers: Parsers) -> tuple[list[Tensor], Structure]:
    """The tensors of a flat item, and its structure.

    An item is a tensor, a sequence of tensors (which becomes a list), a dictionary from str to tensor, or an object
    that a parser takes apart.
    """
    tensors, structure = flatten(_as_container(item, parsers), parsers)
    if isinstance(structure, Table):
        structure = dataclasses.replace(structure, template=dict.fromkeys(item))
    if not tensors or not _is_flat(structure):
        raise _unsupported(item)
    return tensors, structure


def _as_container(item: Any, parsers: Parsers) -> Any:
    if isinstance(item, tuple(parsers) or ()):
        return item
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, Sequence) and not isinstance(item, str | bytes):
        return list(item)
    return item


def _is_flat(structure: Structure) -> bool:
    if isinstance(structure, Table) and not all(isinstance(key, str) for key in structure.keys):
        return False
    members = getattr(structure, "items", (structure,))
    return isinstance(structure, Parsed) or all(isinstance(member, TensorLeaf) for member in members)


def _unsupported(item: object) -> InputError:
    contents: object = ""
    if isinstance(item, Mapping):
        contents = {name: type(value).__name__ for name, value in item.items()}
    elif isinstance(item, Sequence) and not isinstance(item, str | bytes):
        contents = [type(member).__name__ for member in item]
    return InputError(
        "An item must be a tensor, a flat sequence of tensors, a dict from str to tensor, or an object with a "
        f"registered parser, not {type(item).__name__} {contents}. Have collate_fn, or the iterable itself, return one."
    )
