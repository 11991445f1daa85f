"""Habana's bridge to PyTorch, without the card. Importing it, or anything in it, makes the device ``hpu`` known.

Beside a CUDA card importing this package alone does nothing yet: that is how other libraries find out whether there is a Gaudi,
and torch has room for one accelerator. The device becomes known with the first part of the package that is used.
"""

from __future__ import annotations

import os
from importlib import import_module

from habana_frameworks._emulation import underneath

_PARTS = ("core", "hpex", "hpu")


def __getattr__(name: str) -> object:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


if underneath.is_asked_for():
    for part in _PARTS:
        import_module(f"{__name__}.{part}")
    if os.environ.get("PT_HPU_GPU_MIGRATION") == "1":
        import_module(f"{__name__}.gpu_migration")
