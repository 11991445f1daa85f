"""Advisory locks on entries that are being built or used; the kernel releases them when the process ends."""

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
"""On a file system without locks, a build that was not touched for this long counts as abandoned."""

_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


def try_lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock without waiting; False if another process holds the lock, None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in _BUSY else None
    return True


def is_same(path: Path, descriptor: int) -> bool:
    """Whether a path still refers to the open file."""
    try:
        there = path.lstat()
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold a lock file, after waiting for other holders; the file is removed at the end."""
    descriptor = _locked(path)
    try:
        yield
    finally:
        # Removed while locked: a process that waits for it notices, and creates a new one.
        if is_same(path, descriptor):
            with contextlib.suppress(OSError):
                path.unlink()
        os.close(descriptor)


def _locked(path: Path) -> int:
    while True:
        try:
            descriptor = _opened(path)
        except FileNotFoundError:
            # The holder has just removed it; if the whole folder is missing, waiting is pointless.
            if not path.parent.is_dir():
                raise
            continue
        # On a file system without locks two processes do the same work, and each installs a complete folder.
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
        # Created by another user, such as root; in our own directory it can be replaced.
        path.unlink()
        descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileExistsError(errno.EEXIST, "Not a lock file", str(path))
    return descriptor


def _remove_obstacle(path: Path) -> None:
    """Remove anything with the name of the lock file; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


@dataclass(frozen=True, slots=True)
class BuildFolder:
    """A new folder, locked while this process works on it."""

    path: Path
    descriptor: int

    @classmethod
    def new(cls, parent: Path, prefix: str) -> Self:
        """Create a folder that only its owner can enter."""
        while True:
            path = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
            # A cleanup in another process may remove it before it is opened, or before it is locked.
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
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
        """Remove the folder, unless it was moved to its final name, and release the lock."""
        if is_same(self.path, self.descriptor):
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.descriptor)


@contextlib.contextmanager
def abandoned(path: Path) -> Iterator[bool]:
    """Yield whether a folder or file is unused; it cannot come into use inside the block."""
    try:
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode) and not stat.S_ISREG(facts.st_mode):
            yield True
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # We did not create a file that we cannot open.
        yield error.errno in (errno.EACCES, errno.ELOOP)
        return
    try:
        locked = try_lock(descriptor)
        is_old = time.time() - facts.st_mtime > _DAY
        yield (is_old if locked is None else locked) and is_same(path, descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(path: Path) -> bool:
    """Remove a path unless it is in use; links are not followed. Returns whether it was removed."""
    with abandoned(path) as is_free:
        if is_free and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif is_free:
            with contextlib.suppress(OSError):
                path.unlink()
    return not os.path.lexists(path)
