"""Called by torch at the end of its import: starts the emulated Gaudi where the environment asks for it, and else nothing.

It stands outside of ``habana_frameworks``, so that it can be found beside the vendor's package without touching it.
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
    if wanted and _is_in_charge():
        importlib.import_module(wanted[0])


def _is_in_charge() -> bool:
    """Whether the drop-in is what would be imported; the vendor's own package starts itself."""
    try:
        importlib.import_module("habana_frameworks._emulation")
    except ImportError:
        return False
    return True
