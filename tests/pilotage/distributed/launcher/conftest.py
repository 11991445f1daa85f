"""poprun as a process, and what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest


@pytest.fixture
def left_of() -> Callable[[Iterable[int]], list[str]]:
    """Tells what is left of processes: themselves, and memory that they shared."""

    def find(pids: Iterable[int]) -> list[str]:
        gone = [str(pid) for pid in pids]
        shared = [name for name in os.listdir("/dev/shm") if any(f"_{pid}" in name for pid in gone)]
        return [pid for pid in gone if Path(f"/proc/{pid}").exists()] + shared

    return find


@pytest.fixture
def start_poprun(monkeypatch) -> Callable[..., subprocess.Popen[str]]:
    """Starts poprun with these words."""
    for name in ("MASTER_PORT", "MASTER_ADDR", "PILOTAGE_REMOTE_SHELL"):
        monkeypatch.delenv(name, raising=False)

    def start(*words: object, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pilotage.cli.run.poprun", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    return start


@pytest.fixture
def poprun(start_poprun) -> Callable[..., tuple[int, str, str]]:
    """Runs poprun to its end: exit status, output, errors."""

    def run(*words: object, **environment: str) -> tuple[int, str, str]:
        process = start_poprun(*words, **environment)
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    return run
