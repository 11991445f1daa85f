"""Run a command with every one of its processes watched, and leave none of them behind."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pilotage.proof.injection
from pilotage.errors import ProofError
from pilotage.options import environment
from pilotage.proof.process_tree import end_all
from pilotage.proof.records import RunRecord, read_run
from pilotage.proof.watching.settings import WatchSettings

__all__ = ["WatchedRun", "run_watched", "watched_environment"]

_INJECTION = str(Path(pilotage.proof.injection.__file__).parent)
_LINGERING_SECONDS = 20.0
"""How long processes may take to end once their command has ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedRun:
    """How a command ended, and what its processes have recorded."""

    name: str
    """BEFORE or AFTER."""

    command: tuple[str, ...]
    settings: WatchSettings
    record: RunRecord
    status: int
    seconds: float

    @property
    def is_complete(self) -> bool:
        """Whether the script was seen to its own end."""
        return self.status == 0 and all(each.reached_its_end for each in self.record.trained)


def run_watched(name: str, command: Sequence[str], settings: WatchSettings, *, timeout: float) -> WatchedRun:
    """Run a command; raises a `ProofError` of one line if it does not train."""
    folder = Path(settings.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    began = time.monotonic()
    status = _status(name, command, settings, folder, timeout)
    record = read_run(folder)
    run = WatchedRun(
        name=name,
        command=tuple(command),
        settings=settings,
        record=record,
        status=status if status is not None else -1,
        seconds=time.monotonic() - began,
    )
    _require_training(run, folder, timed_out=status is None, timeout=timeout)
    return run


def _status(name: str, command: Sequence[str], settings: WatchSettings, folder: Path, timeout: float) -> int | None:
    """The exit status of the command; None if it ran out of time."""
    with (folder / "stdout").open("wb") as output, (folder / "stderr").open("wb") as errors:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                env=watched_environment(settings),
            )
        except OSError as error:
            raise ProofError(f"{name} cannot be started: {error.strerror}: {command[0]}") from None
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_all(settings.folder, grace=1.0 if process.poll() is not None else 5.0)
            process.wait()


def watched_environment(settings: WatchSettings) -> dict[str, str]:
    """The environment in which each process watches itself."""
    present = environment.for_child()
    paths = [_INJECTION, *filter(None, [present.get("PYTHONPATH")])]
    return environment.for_child(
        **{
            "PYTHONPATH": ":".join(paths),
            "PYTHONHASHSEED": str(settings.seed % 2**32),
            # The proof itself compares with eager PyTorch, and its hidden outputs are not for another check.
            environment.CHECK.name: "off",
            environment.PROOF.name: settings.as_text(),
        }
    )


def _require_training(run: WatchedRun, folder: Path, *, timed_out: bool, timeout: float) -> None:
    """Raise if a run cannot be judged."""
    steps, wanted = run.record.steps, run.settings.steps
    last = _last_line(folder / "stderr")
    said = f" Last line of stderr: {last}" if last else ""
    if steps >= wanted:
        return
    if timed_out:
        raise ProofError(
            f"{run.name} was stopped after {timeout:.0f} s (--timeout), with {steps} of {wanted} updates.{said}"
        )
    if run.status:
        how = f"signal {-run.status}" if run.status < 0 else f"exit status {run.status}"
        raise ProofError(f"{run.name} failed with {how} after {steps} of {wanted} updates.{said}")
    if not run.record.trained and not run.record.others:
        raise ProofError(
            f"{run.name} ended, and no process of it was watched: it imported no torch, or its Python ignores "
            f"PYTHONPATH (-I, -E or -S). The command was: {shlex.join(run.command)}"
        )
    if not run.record.trained:
        raise ProofError(f"{run.name} ended without a backward pass, an optimizer's step or a training program.")


_ERROR = re.compile(r"(?:^|\s)[\w.]*(?:Error|Exception|Interrupt)\b")
"""A line that names an error of Python, with the rank in front if torchrun has started the process."""

_OF_TORCHRUN = "ChildFailedError"
"""The error that torchrun itself ends with, before a table that does not name the script's."""


def _last_line(path: Path) -> str:
    """The last line that says something."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    lines = [line.strip() for line in lines if any(map(str.isalnum, line))]
    if any(_OF_TORCHRUN in line for line in lines):
        lines = [line for line in lines if _ERROR.search(line) and _OF_TORCHRUN not in line] or lines
    return lines[-1][:300] if lines else ""


def python_command(script: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command that runs a script with this Python."""
    return (sys.executable, script, *arguments)
