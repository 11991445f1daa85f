"""Habana's bridge to PyTorch, without the card. Importing it, or anything in it, makes the device ``hpu`` known."""

from __future__ import annotations

from habana_frameworks._emulation.device import activate

activate()

from habana_frameworks.torch import core as core  # noqa: E402
from habana_frameworks.torch import hpex as hpex  # noqa: E402
from habana_frameworks.torch import hpu as hpu  # noqa: E402
