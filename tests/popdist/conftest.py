"""Scripts started by poprun."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LAUNCHER_VARIABLES = ("POPDIST_NUM_TOTAL_REPLICAS", "RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID", "MASTER_PORT")


@pytest.fixture(autouse=True)
def without_a_launcher(monkeypatch):
    for name in LAUNCHER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def poprun(tmp_path) -> Callable[..., list[Any]]:
    """Runs a script in several instances; returns what each passed to `answer(value)`."""

    def run(script: str, *options: str, instances: int = 2) -> list[Any]:
        file = tmp_path / "script.py"
        file.write_text(ANSWER.format(folder=str(tmp_path)) + script)
        command = [sys.executable, "-m", "pilotage.cli.run.poprun", f"--num-instances={instances}", *options]
        ran = subprocess.run([*command, sys.executable, str(file)], capture_output=True, text=True, timeout=200)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return [json.loads(Path(tmp_path, f"{rank}.json").read_text()) for rank in range(instances)]

    return run


ANSWER = """
import json, warnings
from pathlib import Path
warnings.simplefilter("error")
import popdist
def answer(value):
    Path({folder!r}, f"{{popdist.getInstanceIndex()}}.json").write_text(json.dumps(value))
"""
