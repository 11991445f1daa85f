"""A place for compiled code that nobody else can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pilotage.errors import OptionError


def private_directory(path: Path) -> Path:
    """Create a directory that only this user can write to, or check one that exists.

    Compiled code is executed, and libraries are loaded by their path: both are safe only where nobody else can write.
    """
    path = path.expanduser().absolute()
    try:
        _make(path)
    except OSError as error:
        raise OptionError(
            f"Compiled code cannot be kept in {path}: {error.strerror}. Name another directory."
        ) from error
    return checked_directory(path)


def checked_directory(path: Path) -> Path:
    """The real path of an existing directory; raises if anybody else could write to it or replace it."""
    path = path.expanduser().resolve()
    for place in (path, *path.parents):
        if problem := _problem(place, is_own=place == path):
            raise OptionError(
                f"Compiled code is not kept in {path}: {place} {problem}, and compiled code is executed as it is found. "
                f"Use a directory of your own, or take the rights away: chmod go-w {place}."
            )
    return path


def _make(path: Path) -> None:
    """Create a directory and those above it, all of them private whatever the umask says."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(0, "it is not a directory", str(path))


def _problem(place: Path, *, is_own: bool) -> str | None:
    facts = place.stat()
    trusted = {os.geteuid()} if is_own else {os.geteuid(), 0}
    if facts.st_uid not in trusted:
        return "belongs to somebody else"
    # In a directory with the sticky bit, such as /tmp, nobody can replace what belongs to others.
    is_sticky = bool(facts.st_mode & stat.S_ISVTX) and not is_own
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
        return "can be written to by others"
    return None
