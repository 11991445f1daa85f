"""The shape, strides and type of a tensor."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.errors import CaptureError


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The shape, strides and type of a tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> TensorSpec:
        """The specification of an existing tensor."""
        if tensor.layout is not torch.strided:
            raise CaptureError(
                f"A parameter or buffer of shape {list(tensor.shape)} has the layout {tensor.layout}, but the state "
                "of a program must be dense. Keep its indices and values as buffers and build it in forward with "
                "torch.sparse_coo_tensor, or keep it as to_dense()."
            )
        return cls(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def empty(self, device: torch.device) -> Tensor:
        """An uninitialised tensor with this specification."""
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)

    @property
    def dense(self) -> TensorSpec:
        """The same without gaps and overlaps, with the same order of dimensions if possible."""
        if self.stride == contiguous_strides(self.shape):
            return self
        return TensorSpec.of(torch.empty_like(self.empty(torch.device("meta"))))

    @property
    def plain(self) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        """The fields as plain values that processes can exchange."""
        return self.shape, self.stride, self.dtype

    @property
    def elements(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        """The size of all elements in bytes."""
        return self.elements * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}{list(self.shape)}"


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of this shape."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
