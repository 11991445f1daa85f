"""Called by torch at the end of its import: starts the emulated Gaudi if an environment variable asks for it.

It is outside ``habana_frameworks``, so that it can be found beside the vendor's package without importing that.
"""

from __future__ import annotations

import importlib
import os

_MODULES = {
    "PT_HPU_GPU_MIGRATION": "habana_frameworks.torch.gpu_migration",
    "PT_HPU_AUTOLOAD": "habana_frameworks.torch.core",
}


def start() -> None:
    """Import the emulated bridge for PT_HPU_AUTOLOAD=1, and map CUDA to it for PT_HPU_GPU_MIGRATION=1."""
    wanted = [module for variable, module in _MODULES.items() if os.environ.get(variable) == "1"]
    if wanted and _is_drop_in():
        importlib.import_module(wanted[0])


def _is_drop_in() -> bool:
    """Whether ``habana_frameworks`` is the drop-in; the vendor's own package starts itself."""
    try:
        importlib.import_module("habana_frameworks._emulation")
    except ImportError:
        return False
    return True
