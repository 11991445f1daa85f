"""Arithmetic on lists of tensors with factors that are constants (floats) or variables (0-dim float64 tensors).

Both kinds give the same bits as torch's own optimizers on the CPU in float32 and float64. Variable factors therefore
use operations that round as often as the scalar forms do: ``addcmul`` fuses product and sum as ``add`` with ``alpha``
does, whereas ``x - factor * y`` would round once more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pilotage.optim.rule import Value
from pilotage.torch_private import (
    foreach_add,
    foreach_add_,
    foreach_addcdiv_,
    foreach_addcmul,
    foreach_addcmul_,
    foreach_div_,
    foreach_lerp_,
    foreach_mul,
    foreach_mul_,
)

_REDUCED = frozenset({torch.float16, torch.bfloat16})


def is_zero(value: Value) -> bool:
    """Whether a value is the constant zero, so that its term can be left out."""
    return not isinstance(value, Tensor) and value == 0


def scale_(targets: list[Tensor], factor: Value) -> None:
    """``target *= factor``."""
    foreach_mul_(targets, _cast_for_all(factor, targets))


def divide_(targets: list[Tensor], divisor: Value) -> None:
    """``target /= divisor``."""
    foreach_div_(targets, _cast_for_all(divisor, targets))


def shift_(targets: list[Tensor], amount: Value) -> None:
    """``target += amount``."""
    if not isinstance(amount, Tensor):
        foreach_add_(targets, amount)
    else:
        # The overload for a single tensor reads its value, which a captured graph cannot do.
        foreach_add_(targets, _cast_for_each(amount, targets))


def add_scaled_(targets: list[Tensor], others: list[Tensor], factor: Value) -> None:
    """``target += factor * other``."""
    if not isinstance(factor, Tensor):
        foreach_add_(targets, others, alpha=factor)
    else:
        foreach_addcmul_(targets, _widened(others), _cast_for_each(factor, targets))


def add_scaled(targets: list[Tensor], others: list[Tensor], factor: Value) -> list[Tensor]:
    """``target + factor * other`` as new tensors."""
    if not isinstance(factor, Tensor):
        return list(foreach_add(targets, others, alpha=factor))
    sums = foreach_addcmul(targets, _widened(others), _cast_for_each(factor, targets))
    return [total.to(target.dtype) for total, target in zip(sums, targets, strict=True)]


def lerp_(targets: list[Tensor], ends: list[Tensor], weight: Value) -> None:
    """``target += weight * (end - target)``."""
    if not isinstance(weight, Tensor):
        foreach_lerp_(targets, ends, weight)
        return
    wide = _widened(targets)
    foreach_lerp_(wide, _widened(ends), _cast_for_each(weight, wide))
    for target, result in zip(targets, wide, strict=True):
        if result is not target:
            target.copy_(result)


def add_scaled_square_(targets: list[Tensor], bases: list[Tensor], factor: Value) -> None:
    """``target += factor * base * base``."""
    if not isinstance(factor, Tensor):
        foreach_addcmul_(targets, bases, bases, factor)
    else:
        wide = _widened(bases)
        foreach_addcmul_(targets, foreach_mul(wide, _cast_for_all(factor, wide)), wide)


def subtract_scaled_quotient_(
    targets: list[Tensor], numerators: list[Tensor], denominators: list[Tensor], factor: Value
) -> None:
    """``target -= factor * numerator / denominator``."""
    if not isinstance(factor, Tensor):
        foreach_addcdiv_(targets, numerators, denominators, -factor)
    else:
        wide = _widened(numerators)
        foreach_addcdiv_(targets, foreach_mul(wide, _cast_for_all(factor, wide)), denominators, -1)


def square_root(value: Tensor) -> Tensor:
    """The square root of a 0-dim tensor, rounded as Python's ``value ** 0.5``."""
    # A scalar exponent of 0.5 would become sqrt, which sometimes differs from pow in the last bit.
    return torch.pow(value, torch.full_like(value, 0.5))


def _widened(tensors: list[Tensor]) -> list[Tensor]:
    """Half precision tensors as float32: a factor in half precision would lose digits or underflow."""
    return [tensor.float() if tensor.dtype in _REDUCED else tensor for tensor in tensors]


def _cast_for_each(factor: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """The factor in the type of each tensor, at least float32; cast once per type."""
    types = [torch.float32 if tensor.dtype in _REDUCED else tensor.dtype for tensor in tensors]
    casts = {dtype: factor.to(dtype) for dtype in dict.fromkeys(types)}
    return [casts[dtype] for dtype in types]


def _cast_for_all(factor: Value, tensors: list[Tensor]) -> Value:
    """A variable factor in the common type of the tensors; unchanged for half precision and mixed types."""
    if not isinstance(factor, Tensor):
        return factor
    # Without the cast each tensor would cast it again, and 0-dim tensors would be computed in float64.
    types = {tensor.dtype for tensor in tensors}
    return factor.to(types.pop()) if len(types) == 1 and not types & _REDUCED else factor
