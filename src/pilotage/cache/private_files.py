"""Files and directories that only this user can write; never follows a link, never waits for a FIFO."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pilotage.errors import OptionError, ProgramFileError

_CHUNK = 2**20


class ForeignFileError(ProgramFileError):
    """A file is a link, belongs to another user, or can be changed by one."""


@contextlib.contextmanager
def opened(path: str | Path, *, within: int | None = None, is_directory: bool = False) -> Iterator[int]:
    """Open a private file or directory; ``within`` is the descriptor of its parent directory."""
    descriptor = open_private(path, within=within, is_directory=is_directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_private(path: str | Path, *, within: int | None = None, is_directory: bool = False) -> int:
    """Open a private file or directory for reading; raises ForeignFileError or ProgramFileError if it is not one."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        # Opening a device can have side effects, so check the kind before and after.
        refuse_other_kind(path, os.stat(path, dir_fd=within, follow_symlinks=False), is_directory=is_directory)
        descriptor = os.open(path, flags, dir_fd=within)
    except OSError as error:
        raise ProgramFileError(f"{path} cannot be read ({error.strerror})") from error
    try:
        refuse_other_kind(path, facts := os.fstat(descriptor), is_directory=is_directory)
        if problem := rights_problem(facts):
            raise ForeignFileError(f"{path} {problem}")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def refuse_other_kind(path: str | Path, facts: os.stat_result, *, is_directory: bool) -> None:
    """Raise unless the path is a regular file, or a directory if ``is_directory``."""
    if stat.S_ISLNK(facts.st_mode):
        raise ForeignFileError(f"{path} is a symbolic link")
    is_right = stat.S_ISDIR(facts.st_mode) if is_directory else stat.S_ISREG(facts.st_mode)
    if not is_right:
        raise ProgramFileError(f"{path} is not a {'directory' if is_directory else 'regular file'}")


def rights_problem(facts: os.stat_result) -> str | None:
    """Why another user could have written this; None if nobody could, apart from root."""
    if facts.st_uid not in {os.geteuid(), 0}:
        return f"belongs to another user (uid {facts.st_uid})"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written to by others (mode {stat.S_IMODE(facts.st_mode):04o})"
    return None


def read_bytes(descriptor: int, limit: int) -> bytes:
    """Read a whole open file; raises if it is larger than the limit."""
    content, offset = bytearray(), 0
    while piece := os.pread(descriptor, _CHUNK, offset):
        content += piece
        offset += len(piece)
        if offset > limit:
            raise ProgramFileError(f"it is larger than {limit} bytes")
    return bytes(content)


def digest_of(descriptor: int, limit: int) -> str:
    """The SHA-256 of an open file; stops shortly after the limit."""
    digest, offset = hashlib.sha256(), 0
    while offset <= limit and (piece := os.pread(descriptor, _CHUNK, offset)):
        digest.update(piece)
        offset += len(piece)
    return digest.hexdigest()


def read_private(path: Path, limit: int) -> bytes:
    """Read a whole private file."""
    with opened(path) as descriptor:
        return read_bytes(descriptor, limit)


def private_directory(path: Path) -> Path:
    """Create a directory that only this user can write to, or check one that exists.

    Compiled code is executed and libraries are loaded by path, which is only safe if nobody else can write there.
    """
    path = path.expanduser().absolute()
    try:
        _make(path)
    except OSError as error:
        raise OptionError(
            f"Compiled code cannot be kept in {path}: {error.strerror}. Choose another directory."
        ) from error
    return checked_directory(path)


def checked_directory(path: Path) -> Path:
    """The real path of an existing directory; raises if another user could write to it or replace it."""
    path = path.expanduser().resolve()
    for place in (path, *path.parents):
        if problem := _problem(place, is_own=place == path):
            raise OptionError(
                f"Compiled code is not kept in {path}: {place} {problem}, and compiled code is executed without "
                f"further checks. Use a private directory, or run: chmod go-w {place}."
            )
    return path


def _make(path: Path) -> None:
    """Create a directory and its missing parents, all private whatever the umask is."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(0, "it is not a directory", str(path))


def _problem(place: Path, *, is_own: bool) -> str | None:
    facts = place.stat()
    trusted = {os.geteuid()} if is_own else {os.geteuid(), 0}
    if facts.st_uid not in trusted:
        return "belongs to another user"
    # In a directory with the sticky bit, such as /tmp, users cannot replace each other's files.
    is_sticky = bool(facts.st_mode & stat.S_ISVTX) and not is_own
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
        return "can be written to by others"
    return None
