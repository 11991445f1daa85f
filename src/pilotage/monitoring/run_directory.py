"""The run directory, in which the processes of one user announce themselves."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def prepare_run_directory(directory: Path) -> None:
    """Create a missing run directory; raises an OSError if it cannot be created or trusted."""
    if problem := _parent_problem(directory):
        raise PermissionError(problem)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    if problem := run_directory_problem(directory):
        raise PermissionError(problem)


def run_directory_problem(directory: Path) -> str | None:
    """Why a directory is not private to this user; None if it is."""
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        return f"{directory} is not a directory"
    if facts.st_uid != os.geteuid():
        return f"{directory} belongs to another user"
    if facts.st_mode & 0o077:
        return f"{directory} is open to others: chmod 700 {directory}"
    return _parent_problem(directory)


def _parent_problem(directory: Path) -> str | None:
    """Why another user could replace the directory; None if nobody can."""
    parent = directory.parent.stat()
    if parent.st_uid not in (os.geteuid(), 0):
        return f"{directory.parent} belongs to another user"
    if parent.st_mode & 0o022 and not parent.st_mode & stat.S_ISVTX:
        return f"{directory.parent} is writable by others"
    return None
