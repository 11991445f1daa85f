"""The loss that eager PyTorch would call ``backward()`` on, by the documented rule of `pilotage.training`.

Written apart from the search during capture, so that a mistake in either shows as a difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from pilotage.program.structure import Parsers, flatten


def returned_loss(value: Any, parsers: Parsers) -> Tensor | None:
    """The entry ``loss`` of what forward returned, or its only scalar with a gradient; None if there is neither."""
    named = _named_loss(value)
    if isinstance(named, Tensor) and named.requires_grad:
        return named
    tensors, _ = flatten(value, parsers)
    single = [tensor for tensor in tensors if tensor.requires_grad and tensor.numel() == 1]
    scalars = [tensor for tensor in single if tensor.dim() == 0]
    candidates = scalars or single
    return candidates[0] if len(candidates) == 1 else None


def _named_loss(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get("loss")
    is_record = dataclasses.is_dataclass(value) or hasattr(value, "_fields")
    return getattr(value, "loss", None) if is_record else None
