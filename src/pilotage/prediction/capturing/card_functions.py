"""Functions that a card computes by special kernels: attention without a matrix of scores, dropout, recurrence.

Which kernel torch takes depends on how it was built, and tensors without values on a card need a torch that was built
for it. So a program is captured on the processor, with the operations that torch would take on a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pilotage.prediction.replacing import replaced
from pilotage.torch_private import EFFICIENT_ATTENTION, FLASH_ATTENTION

__all__ = ["as_on_a_card"]

_HALF = (torch.float16, torch.bfloat16)


@contextmanager
def as_on_a_card() -> Iterator[None]:
    """While active, functions are captured as a card computes them."""
    # Recurrent networks ask whether cuDNN would run them.
    with replaced(torch.backends.cudnn, "is_acceptable", lambda tensor: True), _CardFunctions():
        yield


class _CardFunctions(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            found = _attention(*args, **named)
        elif func is functional.dropout:
            found = _dropout(*args, **named)
        elif func is torch.dropout:
            found = _dropout(args[0], *args[1:])
        else:
            found = None
        return func(*args, **named) if found is None else found


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor | None:
    if not training or inplace or not 0 < p < 1:
        return None
    result: Tensor = torch.native_dropout(input, p, True)[0]
    return result


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor | None:
    if query.dim() != 4:
        return None
    if enable_gqa:
        key, value = (_repeated(each, query.shape[1] // each.shape[1]) for each in (key, value))
    if query.dtype in _HALF and attn_mask is None and query.shape[-1] <= 256:
        result: Tensor = FLASH_ATTENTION(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
        return result
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    found: Tensor | None = EFFICIENT_ATTENTION(query, key, value, bias, True, dropout_p, is_causal, scale=scale)[0]
    return found


def _repeated(heads: Tensor, times: int) -> Tensor:
    batch, count, length, width = heads.shape
    wide = heads[:, :, None].expand(batch, count, times, length, width)
    return wide.reshape(batch, count * times, length, width)


def _bias(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask.logical_not(), float("-inf"))
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
