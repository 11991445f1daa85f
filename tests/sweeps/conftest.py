"""The sweep is a program, `python tests/sweeps`; its parts also run as tests."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    """Bitwise equality is with eager PyTorch on the CPU, even if there is a card."""
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


@pytest.fixture(autouse=True)
def functions_of_torch(monkeypatch):
    """PyTorch Geometric, which other tests import, replaces these by its own, which fail for scalars."""
    for name in ("index_select", "select"):
        monkeypatch.setattr(torch, name, getattr(torch._C._VariableFunctions, name))
