"""Torch's precision settings around a program: autocast and half-precision accumulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from pilotage.options.choices import Accumulation


def autocast_type(device: str) -> torch.dtype | None:
    """The current autocast type of a kind of device; None if autocast is off."""
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def without_autocast(device: str) -> AbstractContextManager[object]:
    """Switch autocast off, for captured graphs, backward and update."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def accumulating_in(accumulation: Accumulation | None) -> AbstractContextManager[object]:
    """Accumulate half-precision matrix products in this type; None keeps torch's setting. Only for NVIDIA cards."""
    return nullcontext() if accumulation is None else _accumulating_in(accumulation)


@contextmanager
def _accumulating_in(accumulation: Accumulation) -> Iterator[None]:
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_fp16_accumulation, matmul.allow_fp16_reduced_precision_reduction
    in_half = accumulation is Accumulation.HALF
    _set_accumulation(in_half, in_half)
    try:
        yield
    finally:
        _set_accumulation(*before)


def _set_accumulation(accumulation: bool, reduction: bool) -> None:
    matmul = torch.backends.cuda.matmul
    matmul.allow_fp16_accumulation = accumulation
    matmul.allow_fp16_reduced_precision_reduction = reduction
