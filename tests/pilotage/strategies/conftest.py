"""What tests of strategies share."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def programs():
    """Small captured programs, and plain PyTorch to compare them with."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("programs.py"))))
