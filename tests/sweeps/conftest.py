"""The sweep is a program of its own, `python tests/sweeps`; here its parts are run as tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    """Equality to the last bit is with eager PyTorch on the CPU, also where there is a card."""
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
