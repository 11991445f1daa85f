"""The GPU migration toolkit: an unmodified CUDA script runs on the emulated card.

Importing this replaces torch's CUDA functions in the whole process. ``PT_HPU_GPU_MIGRATION=1`` imports it with torch,
and ``GPU_MIGRATION_LOG_LEVEL=1`` logs each call and its replacement.
"""

from __future__ import annotations

from habana_frameworks._emulation import computing_device

if computing_device.is_cuda():
    raise ImportError(
        "A CUDA card computes for the emulated one (PILOTAGE_HPU_ON=cuda), so mapping CUDA to it would be circular. "
        "Run the CUDA script without GPU migration, or unset PILOTAGE_HPU_ON."
    )

import habana_frameworks.torch.hpu  # noqa: F401
from habana_frameworks.torch.gpu_migration import replacement as _replacement

_replacement.replace_everything()
