"""Opening files that only this user can have written; never follows a link, never waits for a FIFO."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pilotage.errors import ProgramFileError

_CHUNK = 2**20


class ForeignFileError(ProgramFileError):
    """A file is a link, belongs to another user, or can be changed by one."""


@contextlib.contextmanager
def opened(path: str | Path, *, within: int | None = None, is_directory: bool = False) -> Iterator[int]:
    """The descriptor of a private file or directory; ``within`` is the descriptor of the directory it lies in."""
    descriptor = open_private(path, within=within, is_directory=is_directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_private(path: str | Path, *, within: int | None = None, is_directory: bool = False) -> int:
    """Open a file or directory for reading; raises ForeignFileError or ProgramFileError where it is not what it should be."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        # Opening a device can have effects of its own, so the kind is checked before and after.
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
    """Raise where something is not the regular file or the directory that it should be."""
    if stat.S_ISLNK(facts.st_mode):
        raise ForeignFileError(f"{path} is a symbolic link")
    is_right = stat.S_ISDIR(facts.st_mode) if is_directory else stat.S_ISREG(facts.st_mode)
    if not is_right:
        raise ProgramFileError(f"{path} is not a {'directory' if is_directory else 'regular file'}")


def rights_problem(facts: os.stat_result) -> str | None:
    """Why somebody else could have written this, if so; root could do so anywhere."""
    if facts.st_uid not in {os.geteuid(), 0}:
        return f"belongs to another user (uid {facts.st_uid})"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written to by others (mode {stat.S_IMODE(facts.st_mode):04o})"
    return None


def read_bytes(descriptor: int, limit: int) -> bytes:
    """Everything in an open file, from its start; raises where it is larger than the limit."""
    content, offset = bytearray(), 0
    while piece := os.pread(descriptor, _CHUNK, offset):
        content += piece
        offset += len(piece)
        if offset > limit:
            raise ProgramFileError(f"it is larger than {limit} bytes")
    return bytes(content)


def digest_of(descriptor: int, limit: int) -> str:
    """The SHA-256 of an open file; reads no more than the limit and a little."""
    digest, offset = hashlib.sha256(), 0
    while offset <= limit and (piece := os.pread(descriptor, _CHUNK, offset)):
        digest.update(piece)
        offset += len(piece)
    return digest.hexdigest()


def read_private(path: Path, limit: int) -> bytes:
    """Everything in a private file."""
    with opened(path) as descriptor:
        return read_bytes(descriptor, limit)
