"""Operations with the same result as plain torch: on an IPU they change how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pilotage.engine import keep_for_backward, mark_loss
from poptorch._errors import require
from poptorch.enums import MatMulSerializationMode
from poptorch.ops.checks import require_tensor

_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"sum": torch.sum, "mean": torch.mean, "none": lambda x: x}


def identity_loss(x: Tensor, reduction: str) -> Tensor:
    """Mark ``x``, reduced by "sum", "mean" or "none", as the loss to train on."""
    require(
        isinstance(reduction, str) and reduction in _REDUCTIONS,
        f"Unsupported reduction type! Choose 'sum', 'mean' or 'none', not {reduction!r}.",
    )
    return mark_loss(_REDUCTIONS[reduction](x))


def nop(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    require_tensor("nop", "tensor", tensor)
    return tensor


def set_available_memory(tensor: Tensor, available_memory_proportion: float) -> Tensor:
    """The tensor itself; the memory proportion of an IPU has no effect here."""
    require_tensor("set_available_memory", "tensor", tensor)
    return tensor


def serializedMatMul(
    lhs: Tensor, rhs: Tensor, mode: MatMulSerializationMode, factor: int = 0, keep_precision: bool = False
) -> Tensor:
    """The product of two matrices; here it is not split into ``factor`` parts, which would give the same result."""
    require(
        isinstance(mode, MatMulSerializationMode),
        f"serializedMatMul takes a poptorch.MatMulSerializationMode as mode, not {mode!r}.",
    )
    require(isinstance(factor, int), f"serializedMatMul takes a whole number as factor, not {factor!r}.")
    require(
        isinstance(keep_precision, bool),
        f"serializedMatMul takes True or False as keep_precision, not {keep_precision!r}.",
    )
    return torch.matmul(lhs, rhs)


def recomputationCheckpoint(*tensors: Any) -> Any:
    """Return the tensors: one by itself, several as a tuple, a tuple or list unchanged.

    They are kept until backward needs them. Values between them and the previous checkpoints are not kept: backward
    recomputes them, bitwise identically.
    """
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        _keep(tensors[0])
        return tensors[0]
    _keep(tensors)
    return tensors[0] if len(tensors) == 1 else tensors


def _keep(values: tuple[Any, ...] | list[Any]) -> None:
    for value in values:
        if not isinstance(value, Tensor):
            raise ValueError(f"poptorch.recomputationCheckpoint takes tensors, not {type(value).__name__}.")
        keep_for_backward(value)
