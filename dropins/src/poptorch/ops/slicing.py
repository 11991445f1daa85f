"""Slices whose start is a tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from poptorch._errors import createPoptorchError
from poptorch.ops.checks import require_tensor

_STARTS = (torch.int16, torch.int32, torch.int64)
"""The types that the start of a slice may have."""


def dynamic_slice(tensor: Tensor, dim: int, start: Tensor, size: int, step: int) -> Tensor:
    """``tensor[start:start + size:step]`` along a dimension, where ``start`` is only known at run time."""
    require_tensor("dynamic_slice", "tensor", tensor)
    _require_start("dynamic_slice", start)
    _require_whole("dynamic_slice", "dim", dim)
    _require_whole("dynamic_slice", "size", size)
    if size < 1:
        raise createPoptorchError(
            "The start and end of a slice must be different."
            if size == 0
            else "Taking a slice of a tensor with the end less than the start is not supported."
        )
    _require_positive("dynamic_slice", "step", step)
    return tensor.index_select(dim, _positions(start, size, step))


def dynamic_update(input: Tensor, src: Tensor, dim: int, start: Tensor, size: int) -> Tensor:
    """``input`` with ``input[start:start + size]`` along a dimension replaced by ``src``."""
    require_tensor("dynamic_update", "input", input)
    require_tensor("dynamic_update", "src", src)
    _require_start("dynamic_update", start)
    _require_whole("dynamic_update", "dim", dim)
    _require_positive("dynamic_update", "size", size)
    if input.dim() != src.dim():
        raise createPoptorchError(
            "poptorch.dynamic_update: input and src tensors must have same dimensionality. "
            f"({input.dim()}) vs ({src.dim()})"
        )
    if input.dtype != src.dtype:
        raise createPoptorchError(
            f"poptorch.dynamic_update: input and src tensor must have same dtype. ({input.dtype} vs {src.dtype})"
        )
    if src.shape[dim] != size:
        raise createPoptorchError(
            f"poptorch.dynamic_update takes a src with size {size} in dimension {dim}, not {src.shape[dim]}."
        )
    return input.index_copy(dim, _positions(start, size, 1), src)


def _positions(start: Tensor, size: int, step: int) -> Tensor:
    return start.reshape(()).to(torch.int64) + torch.arange(0, size, step, device=start.device)


def _require_start(operation: str, start: Any) -> None:
    require_tensor(operation, "start", start)
    if start.numel() != 1 or start.dtype not in _STARTS:
        raise createPoptorchError(
            f"poptorch.{operation} takes one whole number of int16, int32 or int64 as start, not a tensor of "
            f"{start.numel()} of {start.dtype}."
        )


def _require_positive(operation: str, name: str, value: Any) -> None:
    _require_whole(operation, name, value)
    if value < 1:
        raise createPoptorchError(f"poptorch.{operation} takes a {name} of at least 1, not {value}.")


def _require_whole(operation: str, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise createPoptorchError(f"poptorch.{operation} takes a whole number as {name}, not {value!r}.")
