"""Writes of a trained value into the masked or indexed places of a tensor, as in ``x[mask] = self.mask_token``.

The gradient of such a value counts the places, which depends on data. If all places get the same value, ``torch.where``
gives the same result and a gradient that does not depend on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def chosen_by_mask(x: Tensor, indices: Any, value: Any, accumulate: bool = False) -> Tensor | None:
    """The tensor with the value at the masked places; None if torch's own write can be captured."""
    items = indices if isinstance(indices, (tuple, list)) else (indices,)
    mask = items[0] if len(items) == 1 else None
    if not isinstance(mask, Tensor) or mask.dtype is not torch.bool or not _is_trained(value):
        return None
    trailing = x.dim() - mask.dim()
    if value.numel() == 1:
        value = value.reshape(())
    elif value.dim() == trailing + 1 and value.shape[0] == 1:
        value = value.squeeze(0)
    if value.dim() > trailing:
        return None
    places = mask.reshape(*mask.shape, *(1 for _ in range(trailing)))
    return torch.where(places, (x + value if accumulate else value).to(x.dtype), x)


def _index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    chosen = chosen_by_mask(input, indices, values, accumulate)
    return torch.index_put(input, indices, values, accumulate) if chosen is None else chosen


def _index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    chosen = chosen_by_mask(input, indices, values, accumulate)
    return input.index_put_(indices, values, accumulate) if chosen is None else input.copy_(chosen)


def _index_fill(input: Tensor, dim: Any, index: Tensor, value: Any) -> Tensor:
    return _filled(input, dim, index, value) if _is_trained(value) else torch.index_fill(input, dim, index, value)


def _index_fill_(input: Tensor, dim: Any, index: Tensor, value: Any) -> Tensor:
    if _is_trained(value):
        return input.copy_(_filled(input, dim, index, value))
    return input.index_fill_(dim, index, value)


def _filled(x: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    size = x.shape[dim] if x.dim() else 1
    places = torch.zeros(size, dtype=torch.bool, device=x.device).index_fill(0, index, True)
    shape = [1] * x.dim()
    if x.dim():
        shape[dim] = size
    return torch.where(places.reshape(shape), value.to(x.dtype), x)


def _is_trained(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


MASK_FORMS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    torch.index_put: _index_put,
    Tensor.index_put: _index_put,
    torch.index_put_: _index_put_,
    Tensor.index_put_: _index_put_,
    torch.index_fill: _index_fill,
    Tensor.index_fill: _index_fill,
    Tensor.index_fill_: _index_fill_,
}
"""Functions with their capturable forms."""
