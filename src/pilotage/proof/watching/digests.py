"""Short digests of weights and of samples, from which distances can be estimated.

A digest of a tensor is a count sketch: its elements with pseudo-random signs, summed into a few buckets. The norm of
the sketch estimates that of the tensor, and the distance of two sketches that of two tensors. That is enough to
distinguish rounding from another update.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pilotage.proof.weights import BUCKETS, complete_digests
from pilotage.torch_private import flatten_dense_tensors

__all__ = [
    "content_digest",
    "describe_weights",
    "digest_weights",
    "picked_elements",
    "sample_digests",
    "sketch_texts",
    "sketch_weights",
    "tensors_in",
]

_PERIOD = 1 << 14
_SAMPLED = 512
"""How many elements of a batch its digest looks at."""


def digest_weights(named: Iterable[tuple[str, Tensor]]) -> list[dict[str, Any]]:
    """For each tensor its name, shape, type, sketch and the norm of that."""
    kept = list(named)
    return complete_digests(describe_weights(kept), *sketch_texts([sketch_weights(tensor for _, tensor in kept)]))


def describe_weights(named: Iterable[tuple[str, Tensor]]) -> list[dict[str, Any]]:
    """For each tensor its name, shape and type."""
    return [
        {"name": name, "shape": list(tensor.shape), "type": str(tensor.dtype).removeprefix("torch.")}
        for name, tensor in named
    ]


@torch.no_grad()
def sketch_weights(tensors: Iterable[Tensor]) -> Tensor:
    """The sums of the buckets of all tensors; few operations, since each costs more than its arithmetic."""
    kept = [torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor for tensor in tensors]
    if not kept:
        return torch.empty(0, BUCKETS, dtype=torch.float32)
    device = kept[0].device
    if any(tensor.dtype is not torch.float32 or tensor.device != device for tensor in kept):
        kept = [tensor.to(device, torch.float32) for tensor in kept]
    layout = _layout(tuple([tensor.numel() for tensor in kept]), device)
    pieces = []
    for tensor, period, padding in zip(kept, layout.periods, layout.padding, strict=True):
        pieces.append(tensor if period is None else _folded(tensor, period))
        if padding is not None:
            pieces.append(padding)
    # A product with a matrix would be as fast as segments, but a script may let products round.
    signed = (flatten_dense_tensors(pieces) * layout.signs).view(-1, BUCKETS)
    return torch.segment_reduce(signed, "sum", lengths=layout.rows, axis=0, unsafe=True)


def sketch_texts(sketches: Sequence[Tensor]) -> list[str]:
    """Sketches of the same weights, at several times, as text; fetched together."""
    return [base64.b64encode(each.tobytes()).decode() for each in torch.stack([*sketches]).cpu().numpy()]


def _folded(tensor: Tensor, period: int) -> Tensor:
    """A long tensor, summed over the period of the signs."""
    count = tensor.numel()
    rest = count % period
    if not rest:
        return tensor.reshape(-1, period).sum(0)
    flat = tensor.reshape(-1)
    summed = flat[: count - rest].view(-1, period).sum(0)
    summed[:rest] += flat[count - rest :]
    return summed


class _Layout(NamedTuple):
    """How tensors of known sizes lie one behind the other, each padded to whole rows of buckets."""

    periods: list[int | None]
    """Of each tensor that is longer than its signs: after how many elements these repeat."""
    signs: Tensor
    rows: Tensor
    """How many rows each tensor has."""
    padding: list[Tensor | None]


@lru_cache(maxsize=8)
def _layout(counts: tuple[int, ...], device: torch.device) -> _Layout:
    # A script may have chosen another type for new tensors.
    generator = torch.Generator().manual_seed(20240229)
    drawn = torch.randint(0, 2, (_PERIOD,), generator=generator, device="cpu").to(torch.float32) * 2.0 - 1.0
    periods = [None if count <= _PERIOD else _period(count) for count in counts]
    lengths = [count if period is None else period for count, period in zip(counts, periods, strict=True)]
    rows = [-(-length // BUCKETS) for length in lengths]
    gaps = [each * BUCKETS - length for each, length in zip(rows, lengths, strict=True)]
    return _Layout(
        periods=periods,
        signs=torch.cat([drawn[: each * BUCKETS] for each in rows]).to(device),
        rows=torch.tensor(rows, device=device),
        padding=[torch.zeros(gap, dtype=torch.float32, device=device) if gap else None for gap in gaps],
    )


def _period(count: int) -> int:
    """Where the signs of a long tensor repeat: if possible, so that no rest is left to be added."""
    return next((each for each in range(_PERIOD, _PERIOD // 4, -BUCKETS) if count % each == 0), _PERIOD)


def tensors_in(value: Any, depth: int = 3) -> list[Tensor]:
    """The tensors in a batch: of tuples, lists, dictionaries and attributes, nested a little."""
    if isinstance(value, Tensor):
        return [value]
    if depth == 0:
        return []
    if isinstance(value, dict):
        return [tensor for each in value.values() for tensor in tensors_in(each, depth - 1)]
    if isinstance(value, (tuple, list)):
        found = []
        for each in value:
            found += [each] if isinstance(each, Tensor) else tensors_in(each, depth - 1)
        return found
    if hasattr(value, "__dict__") and not callable(value):
        # A class of the script's own, or a mapping such as the encodings of a tokenizer.
        return tensors_in(vars(value), min(depth, 2))
    return []


@torch.no_grad()
def picked_elements(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies of a few hundred elements of each tensor of a batch."""
    found = []
    for tensor in tensors[:4]:
        count = tensor.numel()
        step = max(1, count // _SAMPLED)
        # One view instead of two: between steps each operation takes several microseconds.
        found.append(tensor.contiguous().as_strided((-(-count // step),), (step,)).clone())
    return found


@torch.no_grad()
def content_digest(picked: Iterable[Tensor]) -> list[float]:
    """One number for each tensor of a batch, from its picked elements."""
    wide = [each if each.is_floating_point() else each.double() for each in picked]
    return [torch.linalg.vector_norm(each, 1, dtype=torch.float64).item() for each in wide]


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
