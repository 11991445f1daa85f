"""A run directory of the test's own, and announcements to put in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilotage.monitoring.announcement import Activity, Announcement


@pytest.fixture
def run_directory(tmp_path, monkeypatch) -> Path:
    """Where processes that the test starts, and the test itself, announce themselves."""
    tmp_path.chmod(0o700)
    directory = tmp_path / "run"
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(directory))
    return directory


@pytest.fixture(scope="session")
def announcement():
    """Make an announcement that differs from a plain one in what is given."""

    def make(**changes: Any) -> Announcement:
        plain: dict[str, Any] = {
            "program": None,
            "trains": True,
            "devices": ("cpu",),
            "hardware": ("",),
            "tier": "graph",
            "activity": Activity.RUNNING,
            "since": 90.0,
            "moment": 100.0,
            "calls": 5,
            "steps": 50,
            "updates": 50,
            "rate": 125.0,
            "period": 0.1,
            "replicas": 1,
            "instance": 0,
            "instances": 1,
            "stage": None,
            "job": None,
        }
        return Announcement(**{**plain, **changes})

    return make
