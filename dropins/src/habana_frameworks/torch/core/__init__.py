"""Graph boundaries of lazy mode."""

from __future__ import annotations

from habana_frameworks._emulation import lazy
from habana_frameworks.torch import hpu as hpu
from habana_frameworks.torch.core import step_closure as step_closure


def mark_step(device_str: str = "", sync: bool = False) -> None:
    """End the current graph of lazy mode, and run the step closures, which eager mode does too."""
    hpu.check_device(device_str or "hpu")
    lazy.mark()
    step_closure.run_waiting()
    if sync:
        hpu.synchronize()
