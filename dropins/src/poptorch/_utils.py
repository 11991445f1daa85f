"""Functions on batches that programs import from PopTorch's module of this name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from pilotage.engine import flatten, unflatten
from poptorch._args_parser import custom_arg_parsers, getCustomParser, registered_parsers

__all__ = [
    "combine_batch_tensors_gen",
    "combined_batch_generator",
    "custom_arg_parsers",
    "flattenTensorStructure",
    "getCustomParser",
    "reconstructTensorStructure",
]


def flattenTensorStructure(tensors: Any) -> Iterator[Tensor]:
    """The tensors of a nested value, in order."""
    found, _ = flatten(tensors, registered_parsers())
    return iter(found)


def reconstructTensorStructure(structure: Any, values: Iterable[Tensor]) -> Any:
    """A value like the given one with other tensors."""
    _, found = flatten(structure, registered_parsers())
    return unflatten(found, values)


def combine_batch_tensors_gen(tensors: Iterable[Sequence[Tensor]]) -> Iterator[Tensor]:
    """The tensors of several flat batches, concatenated position by position."""
    for position in zip(*tensors, strict=True):
        yield torch.cat(position)


def combined_batch_generator(iterator: Iterable[Any], num_batches: int, drop_last: bool = True) -> Iterator[Any]:
    """Combine each ``num_batches`` batches into one like the last of them; an incomplete rest is dropped or kept."""
    batches = iter(iterator)
    while group := list(islice(batches, num_batches)):
        if len(group) == num_batches or not drop_last:
            flat = [list(flattenTensorStructure(batch)) for batch in group]
            yield reconstructTensorStructure(group[-1], combine_batch_tensors_gen(flat))
