"""Programs that use the emulated device, each in its own process, because a device cannot be unregistered."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Alone = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def alone(tmp_path, run_alone) -> Alone:
    """Runs a function with its own imports in a new process with the given environment variables."""
    return partial(run_alone, tmp_path)


@pytest.fixture(scope="session")
def run_alone() -> Alone:
    """The same in a given folder, for results that several tests look at."""

    def run(folder: Path, program: Callable[[], Any], **environment: str) -> subprocess.CompletedProcess[str]:
        source = textwrap.dedent(inspect.getsource(program)) + f"\n{program.__name__}()\n"
        file = folder / "program.py"
        file.write_text(source)
        known = {name: value for name, value in os.environ.items() if not name.startswith("PT_HPU")}
        command = [sys.executable, "-W", "error", str(file)]
        ran = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env={**known, "OMP_NUM_THREADS": "1", **environment}
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran

    return run
