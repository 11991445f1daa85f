"""Habana's bridge to PyTorch, without the card. Importing it, or anything in it, registers the device ``hpu``.

Beside a CUDA card, importing only this package does nothing yet: other libraries do that to check for a Gaudi, and
torch supports one accelerator per process. The device is registered when a part of the package is used.
"""

from __future__ import annotations

import os
from importlib import import_module

from habana_frameworks._emulation import computing_device

_PARTS = ("core", "hpex", "hpu")


def __getattr__(name: str) -> object:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


if computing_device.is_asked_for():
    for part in _PARTS:
        import_module(f"{__name__}.{part}")
    if os.environ.get("PT_HPU_GPU_MIGRATION") == "1":
        import_module(f"{__name__}.gpu_migration")
