"""The run directory: where a user's processes announce themselves, and nobody else's."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def made_ready(directory: Path) -> None:
    """Create a run directory that is missing; raises an OSError where it cannot be, or cannot be trusted."""
    if problem := _problem_around(directory):
        raise PermissionError(problem)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    if problem := problem_with(directory):
        raise PermissionError(problem)


def problem_with(directory: Path) -> str | None:
    """Why a directory is not one that belongs to this user alone; None if it is."""
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        return f"{directory} is no directory"
    if facts.st_uid != os.geteuid():
        return f"{directory} belongs to somebody else"
    if facts.st_mode & 0o077:
        return f"{directory} is open to others: chmod 700 {directory}"
    return _problem_around(directory)


def _problem_around(directory: Path) -> str | None:
    """Whether somebody else could put another directory in the place of this one."""
    around = directory.parent.stat()
    if around.st_uid not in (os.geteuid(), 0):
        return f"{directory.parent} belongs to somebody else"
    if around.st_mode & 0o022 and not around.st_mode & stat.S_ISVTX:
        return f"{directory.parent} can be written to by others"
    return None
