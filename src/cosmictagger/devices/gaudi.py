"""Gaudi, through nothing but Habana's documented interface."""

from __future__ import annotations

from collections.abc import Callable

import torch

from cosmictagger.errors import DeviceError


def gaudi() -> tuple[torch.device, Callable[[], object]]:
    """The device, and what ends a graph of lazy mode."""
    import habana_frameworks.torch.core as htcore

    if not torch.hpu.is_available():  # type: ignore[attr-defined]
        raise DeviceError("run.compute_mode=HPU cannot be: habana_frameworks finds no card. Say run.compute_mode=CPU.")
    return torch.device("hpu"), htcore.mark_step
