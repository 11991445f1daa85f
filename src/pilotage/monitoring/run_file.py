"""The file in which a process announces one program: always complete, and removed when the process ends."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from pilotage.monitoring.processes import ProcessIdentity
from pilotage.monitoring.run_directory import prepare_run_directory

SUFFIX = ".json"
UNFINISHED = ".part"


class RunFile:
    """One announcement on disk, owned by the process that created this object."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._identity = ProcessIdentity.of_this_process()
        self._name = self._identity.name_for(secrets.token_hex(4))
        self._path: Path | None = None

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process created it, and not the parent of a fork."""
        return self._identity.pid == os.getpid()

    def write(self, text: str) -> None:
        """Write the text atomically, to the first directory that works; raises an OSError if none does."""
        if self._path is not None and _write_problem(self._path, text) is None:
            return
        problems = []
        for directory in self._directories:
            try:
                prepare_run_directory(directory)
            except OSError as error:
                problems.append(str(error))
                continue
            path = directory / f"{self._name}{SUFFIX}"
            problem = _write_problem(path, text)
            if problem is None:
                self._path = path
                return
            problems.append(problem)
        raise OSError("; ".join(problems))

    def remove(self) -> None:
        """Remove the file if it belongs to this process."""
        if self._path is not None and self.is_of_this_process:
            for path in (self._path, self._path.with_suffix(UNFINISHED)):
                with contextlib.suppress(OSError):
                    path.unlink()
            self._path = None


def _write_problem(path: Path, text: str) -> str | None:
    """Write a file; returns the problem, if any."""
    unfinished = path.with_suffix(UNFINISHED)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(unfinished, path)
    except OSError as error:
        return str(error)
    return None
