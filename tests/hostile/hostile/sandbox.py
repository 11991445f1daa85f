"""A separate process that opens hostile files, each in its own fork, and watches what they do.

`Sandbox` starts the process; `attempt` passes it a file and returns the outcome. A function ``act(path)``, named as
``module:function``, opens the file in an empty folder, with limits on time and memory and an audit hook.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Outcome:
    """The outcome of opening a file."""

    ended: str
    """``done``, ``refused``, ``crashed`` or ``hung``."""

    said: str
    """What `act` returned, or the error and its text."""

    violations: tuple[str, ...]
    """Side effects, such as running code or touching other files and processes."""

    growth: int
    """The peak growth of the process memory in bytes."""


class Sandbox:
    """Opens files in a separate process."""

    def __init__(self, act: str, folder: Path, warm_up: Path, *, seconds: int = 20, memory: int = 4 << 30) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PILOTAGE_CACHE_DIR": "off",
            "PILOTAGE_RUN_DIR": "off",
            "PILOTAGE_BACKEND": "cpu",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        command = [sys.executable, "-W", "ignore", "-m", "hostile.child", act, str(warm_up), str(seconds), str(memory)]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        """Wait until the process is ready."""
        assert self._answer() == {"ready": True}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def attempt(self, path: Path) -> Outcome:
        """Open a file, and return the outcome."""
        assert self._process.stdin is not None
        before = _listing(self.folder)
        self._process.stdin.write(json.dumps(str(path)) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        touched = sorted(_listing(self.folder) ^ before)
        violations = (*answer["violations"], *(f"touched {name}" for name in touched))
        return Outcome(answer["ended"], answer["said"], violations, answer["growth"])

    def _answer(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"The sandbox has ended with {self._process.wait()}."
        return json.loads(line)


def _listing(folder: Path) -> set[tuple[str, int, int]]:
    found = [(path, path.lstat()) for path in folder.rglob("*")]
    return {(str(path.relative_to(folder)), facts.st_size, facts.st_mtime_ns) for path, facts in found}
