"""Short digests of weights and of samples, from which distances can be estimated.

A digest of a tensor is a count sketch: its elements with pseudo-random signs, summed into a few buckets. The norm of
the sketch estimates that of the tensor, and the distance of two sketches that of two tensors, so that rounding can be
told from another update.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["BUCKETS", "content_digest", "digest_weights", "sample_digests", "tensors_in"]

BUCKETS = 16
_PERIOD = 1 << 14
_SAMPLED = 512
"""How many elements of a batch its digest looks at."""

_signs: dict[torch.device, Tensor] = {}


@torch.no_grad()
def digest_weights(named: Iterable[tuple[str, Tensor]]) -> list[dict[str, Any]]:
    """For each tensor its name, shape, type, sketch and the norm of that."""
    kept = [(name, tensor.detach()) for name, tensor in named]
    if not kept:
        return []
    rows = torch.stack([_sketch(tensor) for _, tensor in kept]).double().tolist()
    return [
        {
            "name": name,
            "shape": list(tensor.shape),
            "type": str(tensor.dtype).removeprefix("torch."),
            "norm": math.sqrt(sum(each * each for each in row)),
            "sketch": row,
        }
        for (name, tensor), row in zip(kept, rows, strict=True)
    ]


def _sketch(tensor: Tensor) -> Tensor:
    """The sums of the buckets; few operations, since each costs more than its arithmetic."""
    flat = tensor.reshape(-1).to("cpu", torch.float32)
    signs = _signs_on(flat.device)
    count = flat.numel()
    if count > _PERIOD:
        whole = count - count % _PERIOD
        signed = flat[:whole].view(-1, _PERIOD).sum(0)
        signed[: count - whole] += flat[whole:]
        signed *= signs
    else:
        signed = flat.new_zeros(-(-count // BUCKETS) * BUCKETS)
        torch.mul(flat, signs[:count], out=signed[:count])
    return signed.view(-1, BUCKETS).sum(0)


def _signs_on(device: torch.device) -> Tensor:
    if device not in _signs:
        generator = torch.Generator().manual_seed(20240229)
        drawn = torch.randint(0, 2, (_PERIOD,), generator=generator) * 2.0 - 1.0
        _signs[device] = drawn.to(device)
    return _signs[device]


def tensors_in(value: Any, depth: int = 3) -> list[Tensor]:
    """The tensors in a batch: of tuples, lists and dictionaries, nested a little."""
    if isinstance(value, Tensor):
        return [value]
    if depth == 0:
        return []
    if isinstance(value, dict):
        return [tensor for each in value.values() for tensor in tensors_in(each, depth - 1)]
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_in(each, depth - 1)]
    return []


@torch.no_grad()
def content_digest(tensors: Sequence[Tensor]) -> list[float]:
    """One number for each tensor of a batch, from a few hundred of its elements."""
    found = []
    for tensor in tensors[:4]:
        flat = tensor.detach().reshape(-1)
        picked = flat[:: max(1, flat.numel() // _SAMPLED)].double()
        found.append(float(picked.abs().sum()))
    return found


@torch.no_grad()
def sample_digests(tensors: Sequence[Tensor]) -> list[float]:
    """One number for each sample of a batch whose data set has no indices."""
    first = next((tensor for tensor in tensors if tensor.dim() and tensor.numel()), None)
    if first is None:
        return []
    rows = first.detach().reshape(first.shape[0], -1)
    picked = rows[:, :: max(1, rows.shape[1] // 64)].double().cpu()
    weights = torch.arange(1, picked.shape[1] + 1, dtype=torch.float64).sqrt()
    values: list[float] = (picked @ weights).tolist()
    return [float(f"{value:.6g}") for value in values]
