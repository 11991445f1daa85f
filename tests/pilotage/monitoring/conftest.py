"""A private run directory for each test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def run_directory(tmp_path, monkeypatch) -> Path:
    """Where processes that the test starts, and the test itself, announce themselves."""
    tmp_path.chmod(0o700)
    directory = tmp_path / "run"
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(directory))
    return directory
