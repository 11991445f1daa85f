"""Advisory locks: who compiles, who builds, who uses what. They end with their process, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_DAY = 86400.0
"""Where a file system has no locks, a build that was not touched for this long counts as abandoned."""

_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


def try_lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock without waiting; False where somebody else holds a lock, None where the file system has none."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in _BUSY else None
    return True


def is_same(path: Path, descriptor: int) -> bool:
    """Whether a path still leads to the open file."""
    try:
        there = path.lstat()
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for whoever holds it; it is removed in the end."""
    descriptor = _locked(path)
    try:
        yield
    finally:
        # Removed while it is locked: whoever waits for it sees that it is gone, and makes another one.
        if is_same(path, descriptor):
            with contextlib.suppress(OSError):
                path.unlink()
        os.close(descriptor)


def _locked(path: Path) -> int:
    while True:
        try:
            descriptor = _opened(path)
        except FileNotFoundError:
            # Its holder has removed it since we looked; where the folder is missing, there is nothing to wait for.
            if not path.parent.is_dir():
                raise
            continue
        # Without locks in the file system two processes do the same work, and each puts a whole folder in place.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_same(path, descriptor):
            return descriptor
        os.close(descriptor)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if path.is_symlink() or (path.exists() and not path.is_file()):
        _remove_obstacle(path)
    try:
        descriptor = os.open(path, flags, 0o600)
    except PermissionError:
        # Left by another user, root for example; in a directory of ours it can be replaced.
        path.unlink()
        descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileExistsError(errno.EEXIST, "Not a lock file", str(path))
    return descriptor


def _remove_obstacle(path: Path) -> None:
    """Clear the name of a lock file; a link goes, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


@dataclass(frozen=True, slots=True)
class BuildFolder:
    """A new folder that is locked for as long as this process works on it."""

    path: Path
    descriptor: int

    @classmethod
    def new(cls, parent: Path, prefix: str) -> Self:
        """Create one; only its owner can enter it."""
        while True:
            path = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            # Somebody who tidies up may have found it before it was locked.
            if try_lock(descriptor) is not False and is_same(path, descriptor):
                return cls(path, descriptor)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder, unless it was moved to its final place, and give up the lock."""
        if is_same(self.path, self.descriptor):
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.descriptor)


@contextlib.contextmanager
def abandoned(path: Path) -> Iterator[bool]:
    """Whether nobody works on a build folder, a lock file or a temporary file; nobody can begin to meanwhile."""
    try:
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode) and not stat.S_ISREG(facts.st_mode):
            yield True
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # What we may not even open was not made by us.
        yield error.errno in (errno.EACCES, errno.ELOOP)
        return
    try:
        locked = try_lock(descriptor)
        is_old = time.time() - facts.st_mtime > _DAY
        yield (is_old if locked is None else locked) and is_same(path, descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(path: Path) -> bool:
    """Remove something unless somebody works on it; a link goes, not what it leads to. Tells whether it is gone."""
    with abandoned(path) as is_free:
        if is_free and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif is_free:
            with contextlib.suppress(OSError):
                path.unlink()
    return not os.path.lexists(path)
