"""The GPU migration toolkit: a script written for CUDA runs on the emulated card with its source untouched.

Importing this replaces torch's names for CUDA in the whole process. ``PT_HPU_GPU_MIGRATION=1`` imports it with torch, and
``GPU_MIGRATION_LOG_LEVEL=1`` writes down each call and what became of it.
"""

from __future__ import annotations

from habana_frameworks._emulation import underneath

if underneath.is_cuda():
    raise ImportError(
        "A CUDA card computes for the emulated one (PILOTAGE_HPU_ON=cuda), so mapping CUDA to it would go in a circle. Run the "
        "script for CUDA as it is, or leave PILOTAGE_HPU_ON out."
    )

import habana_frameworks.torch.hpu  # noqa: F401
from habana_frameworks.torch.gpu_migration import replacement as _replacement

_replacement.replace_everything()
