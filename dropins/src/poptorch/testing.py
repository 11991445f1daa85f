"""Comparing what two models return."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["allclose"]


def allclose(expected: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two values, nested in the same lists and tuples, hold tensors that are close to each other."""
    if type(expected) is not type(other):
        return False
    if isinstance(expected, tuple | list):
        return len(expected) == len(other) and all(
            allclose(one, another, rtol, atol, equal_nan) for one, another in zip(expected, other, strict=True)
        )
    if isinstance(expected, Tensor):
        return expected.shape == other.shape and torch.allclose(expected, other, rtol, atol, equal_nan)
    return bool(expected == other)
