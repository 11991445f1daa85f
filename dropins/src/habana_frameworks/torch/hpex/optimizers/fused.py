"""What the fused optimizers share: their updates are graphs of their own in lazy mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from habana_frameworks._emulation import lazy


@contextlib.contextmanager
def own_graph() -> Iterator[None]:
    """Mark a step before and after an update, and compute without gradients."""
    lazy.mark(inside_a_call=True)
    with torch.no_grad():
        yield
    lazy.mark(inside_a_call=True)


def with_gradients(group: dict[str, Any], name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """The parameters of a group that have gradients; sparse gradients raise."""
    for parameter in group["params"]:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            raise RuntimeError(f"{name} does not support sparse gradients.")
        yield parameter, parameter.grad
