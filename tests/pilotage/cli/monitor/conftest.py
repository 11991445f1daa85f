"""Surveys to show: a machine with a card, and processes that were never started."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pilotage.monitoring.announcement import Activity
from pilotage.monitoring.device import Device
from pilotage.monitoring.survey import AttachedProcess, AttachedProgram, Survey

CPU = Device(
    id="cpu",
    maker="CPU",
    name="Swift 9000, 2 cores",
    memory_used=3 * 2**30,
    memory_total=2**34,
    utilisation=0.53,
    clock=2793.5,
)
CARD = Device(
    id="cuda:0",
    maker="NVIDIA",
    name="NVIDIA H200",
    identity="GPU-1234",
    driver="570.1",
    memory_used=2**30,
    memory_total=139 * 2**30,
    utilisation=0.97,
    temperature=61.0,
    power=412.5,
    clock=1980.0,
)


@pytest.fixture
def program(announcement):
    """Make a program of an attached process."""

    def make(*, activity: Activity = Activity.RUNNING, **changes: Any) -> AttachedProgram:
        said = announcement(activity=activity, **{"calls": 1238, "steps": 12380, "rate": 375.4, **changes})
        return AttachedProgram(said, said.devices, activity)

    return make


@pytest.fixture
def process(program):
    """Make an attached process."""

    def make(pid: int = 205698, *programs: AttachedProgram, **changes: Any) -> AttachedProcess:
        programs = programs or (program(),)
        devices = tuple(dict.fromkeys(device for each in programs for device in each.devices))
        plain = {"user": "trainee01", "command": "python pytorch_ipu.py", "seconds": 13.0, "devices": devices}
        return AttachedProcess(pid=pid, programs=programs, **{**plain, **changes})

    return make


@pytest.fixture
def survey():
    """Make a survey of a machine with a processor and a card."""

    def make(*processes: AttachedProcess, devices=(CPU, CARD), **notes: tuple[str, ...]) -> Survey:
        return Survey("vm", datetime(2026, 11, 15, 12, 0, tzinfo=UTC), devices, processes, **notes)

    return make
