"""Gaudi, through nothing but Habana's documented interface."""

from __future__ import annotations

from collections.abc import Callable

import torch

from cosmictagger.errors import DeviceError


def gaudi() -> tuple[torch.device, str, Callable[[], object]]:
    """The device, what it calls itself, and what ends a graph of lazy mode."""
    try:
        import habana_frameworks.torch.core as htcore
    except ImportError as error:
        raise DeviceError(f"run.compute_mode=HPU cannot be: {error}") from None
    hpu = torch.get_device_module("hpu")
    if not hpu.is_available():
        raise DeviceError("run.compute_mode=HPU cannot be: habana_frameworks finds no card. Say run.compute_mode=CPU.")
    return torch.device("hpu"), hpu.get_device_name(), htcore.mark_step
