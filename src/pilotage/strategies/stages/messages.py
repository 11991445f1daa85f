"""Messages between neighbouring stages of a pipeline: several tensors packed into one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pilotage.program.specification import TensorSpec

_ALIGNMENT = 16
"""In bytes: the size of the largest number type."""

_CARRIER = torch.float32
"""The type in which all tensors are sent; values are only copied."""


class Message:
    """Tensors of known shapes and types, packed into one tensor."""

    def __init__(self, specifications: Sequence[TensorSpec]) -> None:
        self._parts: list[tuple[TensorSpec, int, int]] = []
        start = 0
        for specification in specifications:
            length = -(-specification.bytes // _ALIGNMENT) * _ALIGNMENT // _CARRIER.itemsize
            self._parts.append((specification, start, length))
            start += length
        self.size = start
        """How many elements the message has."""

    @torch.no_grad()
    def pack(self, tensors: Sequence[Tensor], device: torch.device, size: int | None = None) -> Tensor:
        """The message on a device, with at least this size."""
        carrier = torch.empty(max(self.size, size or 0), dtype=_CARRIER, device=device)
        for target, tensor in zip(self.unpack(carrier), tensors, strict=True):
            target.copy_(tensor)
        return carrier

    def unpack(self, carrier: Tensor) -> list[Tensor]:
        """The tensors, as views of the message."""
        return [_part(carrier[start : start + length], specification) for specification, start, length in self._parts]


def _part(carrier: Tensor, specification: TensorSpec) -> Tensor:
    as_numbers = carrier.view(specification.dtype)
    return as_numbers.as_strided(specification.shape, specification.stride, as_numbers.storage_offset())
