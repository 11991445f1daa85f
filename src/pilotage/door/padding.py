"""Pads sequences to a few lengths, so that a few programs are enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import InputError, OptionError


class Padding:
    """Pads one dimension of all tensors of a batch to the next of some lengths."""

    def __init__(self, buckets: Sequence[int], dimension: int = 1, values: float | Mapping[Any, float] = 0) -> None:
        self._buckets = sorted(buckets)
        if not self._buckets or self._buckets[0] < 1:
            raise OptionError(f"buckets is {list(buckets)}. It takes one or more lengths of at least 1.")
        if dimension < 1:
            raise OptionError(f"dimension is {dimension}. It must be at least 1: dimension 0 counts the samples.")
        self._dimension = dimension
        self._values = values

    def padded(self, batch: Any) -> Any:
        """The batch with padded tensors; those without the dimension stay as they are."""
        return self._of(batch, None)

    def _of(self, value: Any, name: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value, name)
        if isinstance(value, Mapping):
            return {key: self._of(member, key) for key, member in value.items()}
        if isinstance(value, list | tuple):
            members = [self._of(member, position) for position, member in enumerate(value)]
            return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
        return value

    def _tensor(self, tensor: Tensor, name: Any) -> Tensor:
        if tensor.dim() <= self._dimension:
            return tensor
        length = tensor.shape[self._dimension]
        bucket = next((each for each in self._buckets if each >= length), None)
        if bucket is None:
            raise InputError(
                f"A sequence has the length {length}, but the longest of the buckets is {self._buckets[-1]}. Add a "
                "longer one, or cut the sequences."
            )
        if bucket == length:
            return tensor
        filling = self._values.get(name, 0) if isinstance(self._values, Mapping) else self._values
        shape = list(tensor.shape)
        shape[self._dimension] = bucket - length
        return torch.cat([tensor, tensor.new_full(shape, filling)], dim=self._dimension)
