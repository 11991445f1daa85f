"""The tensors of an operation: their number, sizes and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["bytes_of", "described", "tensors_in", "type_name"]


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a value that may be nested in lists."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [each for item in value for each in tensors_in(item)]
    return []


def type_name(dtype: torch.dtype) -> str:
    """The name of a type that a device model has a rate for."""
    name = str(dtype).removeprefix("torch.")
    return name if name in ("float16", "bfloat16", "float64") else "float32"


def bytes_of(tensor: Tensor) -> int:
    """The bytes of the elements, or of what they lie in if elements share memory."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


_SHORT: Mapping[str, str] = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}


def described(value: Any) -> str:
    """Types and shapes of results: ``f32[8,64,32,32]``."""
    described = []
    for each in tensors_in(value):
        name = str(each.dtype).removeprefix("torch.")
        letters = name.rstrip("0123456789")
        short = f"{_SHORT.get(letters, letters)}{name[len(letters) :]}"
        described.append(f"{short}[{','.join(map(str, each.shape))}]")
    return ", ".join(described[:4]) + (", …" if len(described) > 4 else "")
