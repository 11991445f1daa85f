"""Habana's bridge to PyTorch, without the card. Importing it, or anything in it, makes the device ``hpu`` known."""

from __future__ import annotations

import os

from habana_frameworks._emulation.device import activate

activate()

from habana_frameworks.torch import core as core  # noqa: E402
from habana_frameworks.torch import hpex as hpex  # noqa: E402
from habana_frameworks.torch import hpu as hpu  # noqa: E402

if os.environ.get("PT_HPU_GPU_MIGRATION") == "1":
    from habana_frameworks.torch import gpu_migration as gpu_migration
