"""Run a command, watch all of its processes, and leave none of them behind."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pilotage.proof.injection
from pilotage.errors import ProofError
from pilotage.options import environment
from pilotage.proof.process_tree import ProcessTree, Signals
from pilotage.proof.records import ScriptRecord, read_run
from pilotage.proof.watching.settings import WatchSettings

__all__ = ["WatchedRun", "run_watched", "watched_environment"]

_SECONDS_BETWEEN_LOOKS = 0.5
_INJECTION = str(Path(pilotage.proof.injection.__file__).parent)


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedRun:
    """How a command ended, and what its processes have recorded."""

    name: str
    """BEFORE or AFTER."""

    command: tuple[str, ...]
    settings: WatchSettings
    record: ScriptRecord
    status: int
    seconds: float
    failure: str | None = None
    """How it failed after the last compared step, in one line; None if it did not."""

    @property
    def is_complete(self) -> bool:
        """Whether the script was seen to its own end."""
        return self.status == 0 and all(each.reached_its_end for each in self.record.trained)


def run_watched(
    name: str, command: Sequence[str], settings: WatchSettings, *, timeout: float, signals: Signals | None = None
) -> WatchedRun:
    """Run a command; raises a `ProofError` of one line if it does not train."""
    folder = Path(settings.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    began = time.monotonic()
    status = _status(name, command, settings, folder, timeout, signals or Signals())
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
    return replace(run, failure=_failure(run, folder, timed_out=status is None, timeout=timeout))


def _status(
    name: str, command: Sequence[str], settings: WatchSettings, folder: Path, timeout: float, signals: Signals
) -> int | None:
    """The exit status of the command; None if it ran out of time."""
    process: subprocess.Popen[bytes] | None = None
    with (
        (folder / "stdout").open("wb") as output,
        (folder / "stderr").open("wb") as errors,
        ProcessTree(settings.folder) as tree,
    ):
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                env=watched_environment(settings),
            )
            return _waited(process, timeout, signals)
        except OSError as error:
            raise ProofError(f"{name} cannot be started: {error.strerror}: {command[0]}") from None
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also if a signal came before the process was known here.
            tree.end(grace=1.0 if process is not None and process.poll() is not None else 5.0)
            if process is not None:
                process.wait()


def _waited(process: subprocess.Popen[bytes], timeout: float, signals: Signals) -> int:
    """The exit status of a process, after looking for signals from time to time."""
    end = time.monotonic() + timeout
    while True:
        signals.check()
        left = end - time.monotonic()
        try:
            return process.wait(max(0.0, min(_SECONDS_BETWEEN_LOOKS, left)))
        except subprocess.TimeoutExpired:
            if left <= _SECONDS_BETWEEN_LOOKS:
                raise


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
    if steps >= wanted:
        return
    said = _said(folder)
    error = next((each.error for each in (*run.record.trained, *run.record.others) if each.error is not None), None)
    if error is not None and not _ERROR.search(said):
        # The last line of a message of several lines does not name the error.
        said = f" {error}"
    if timed_out:
        raise ProofError(
            f"{run.name} was stopped after {timeout:.0f} s (--timeout), with {steps} of {wanted} updates.{said}"
        )
    if run.status:
        raise ProofError(f"{run.name} failed with {_how(run.status)} after {steps} of {wanted} updates.{said}")
    if not run.record.trained and not run.record.others:
        raise ProofError(
            f"{run.name} ended, and none of its processes was watched: it imported no torch, or its Python ignores "
            f"PYTHONPATH (-I, -E or -S). The command was: {shlex.join(run.command)}"
        )
    if not run.record.trained:
        raise ProofError(f"{run.name} ended without a backward pass, an optimizer's step or a training program.")


def _failure(run: WatchedRun, folder: Path, *, timed_out: bool, timeout: float) -> str | None:
    """How a run that can be judged failed after its last compared step; None if it did not.

    The status of a script that continued to train does not count, since it was ended on purpose.
    """
    if any(each.was_stopped for each in run.record.trained):
        return None
    if timed_out:
        return f"{run.name} was stopped after {timeout:.0f} s (--timeout), after the last compared step.{_said(folder)}"
    error = next((each.error for each in run.record.trained if each.error is not None), None)
    if run.status == 0 and error is None:
        return None
    how = f" with {_how(run.status)}" if run.status else ""
    said = f" {error}" if error is not None else _said(folder)
    return f"{run.name} failed{how} after the last compared step.{said}"


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _said(folder: Path) -> str:
    """The last line that a command printed to standard error, for a message."""
    last = _last_line(folder / "stderr")
    return f" Last line of stderr: {last}" if last else ""


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
