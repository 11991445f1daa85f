"""Worlds of real processes, as the tests of `pilotage.distributed` make them."""

from __future__ import annotations

import runpy
from pathlib import Path

_worlds = runpy.run_path(str(Path(__file__).parents[2] / "distributed" / "conftest.py"))
instances, world = _worlds["instances"], _worlds["world"]
