"""Starts and stops the compiling process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from pilotage.cache.locks import BuildFolder, remove_abandoned
from pilotage.compiler.job import CompileJob
from pilotage.options import environment

_SCRATCH = "pilotage-compiling-"


class CompilingProcess:
    """Compiles one job in the background."""

    def __init__(self, job: CompileJob) -> None:
        build = _scratch()
        self._scratch = build.path
        try:
            job.write(self._scratch / "job")
        except BaseException:
            build.remove()
            raise
        self._messages = (self._scratch / "messages").open("w+b")
        # The compiling process exits when its standard input closes, even if this process is killed.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pilotage.compiler.worker.main", str(self._scratch / "job")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._messages,
            env=_environment(self._scratch, job.compiler_threads),
            start_new_session=True,
        )
        self._end = weakref.finalize(self, _finish, self._process, self._messages, build)

    @property
    def is_running(self) -> bool:
        """Whether it is still compiling."""
        return self._process.poll() is None

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it ends, or for so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def problem(self) -> str | None:
        """Why the ended process failed; None if it succeeded."""
        if self._process.poll() == 0:
            return None
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it exited with status {self._process.returncode}"

    def stop(self) -> None:
        """Kill the process and remove its files."""
        self._end()


def _environment(scratch: Path, threads: int) -> dict[str, str]:
    # Inductor's scratch files go into the job's folder, and imports work as in this process. Where CI is set, Inductor
    # refuses to leave an operation to torch's kernel that it could decompose, as torch's own tests want.
    return environment.for_child(
        CI="",
        TORCHINDUCTOR_CACHE_DIR=str(scratch / "inductor"),
        TORCHINDUCTOR_COMPILE_THREADS=str(threads),
        PYTHONPATH=os.pathsep.join(path for path in sys.path if path),
    )


def _finish(process: subprocess.Popen[bytes], messages: BinaryIO, build: BuildFolder) -> None:
    if process.poll() is None:
        # Its children, such as C++ compilers, are in its process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
    messages.close()
    build.remove()


def _scratch() -> BuildFolder:
    """A folder for one job; also removes folders of processes that were killed together with their compiler."""
    place = Path(tempfile.gettempdir())
    for left in place.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError):
            if left.lstat().st_uid == os.geteuid():
                remove_abandoned(left)
    return BuildFolder.new(place, _SCRATCH)
