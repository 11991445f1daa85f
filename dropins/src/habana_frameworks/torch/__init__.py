"""Habana's bridge to PyTorch, without the card. Importing it, or anything in it, registers the device ``hpu``.

Two imports of only this package do nothing yet: beside a CUDA card, because torch supports one accelerator per process,
and by a library that looks for a Gaudi, because it would train on the emulated one although nobody asked for that. The
device is registered when a part of the package is used.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from habana_frameworks import _needs_torch as _needs_torch
from habana_frameworks import autoload
from habana_frameworks._emulation import computing_device
from pilotage.engine import Warned, log_event

is_torch_fork = False
"""Whether torch is the vendor's own build."""

_PARTS = ("hpu", "core", "hpex", "distributed", "utils", "activity_profiler")


def overwrite_torch_optimizers() -> None:
    """Do nothing: torch's optimizers need no marks here."""


def _part(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> object:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name)


def _can_be_built() -> bool:
    """Whether the emulated device can be built; libraries that only look for a Gaudi must not fail if it cannot."""
    from habana_frameworks._emulation.building import CannotBuildError
    from habana_frameworks._emulation.library import library

    try:
        library()
    except CannotBuildError as error:
        log_event(Warned(message=f"{error} Until then the device hpu is missing; PILOTAGE_HPU_ON=off hides this line."))
        return False
    return True


if computing_device.is_asked_for() and _can_be_built():
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    for part in _PARTS:
        _part(part)
    if os.environ.get("PT_HPU_GPU_MIGRATION") == "1":
        _part("gpu_migration")
    autoload.is_loaded = True
