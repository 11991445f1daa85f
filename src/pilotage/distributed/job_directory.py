"""A private directory in which the processes of a job on one host find each other.

It holds the files of their stores, and a key that proves that a peer can read the directory too.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pilotage.errors import DistributedError

_PREFIX = "pilotage-job-"
_NAME = re.compile(re.escape(_PREFIX) + r"\w+")
_KEY, _KEY_BYTES = "key", 32
_LOCK_GRACE_SECONDS = 60.0
"""A younger directory may not be locked yet by its creator."""


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """The directory, and the lock of its creator, which the kernel releases when that process ends."""

    path: Path
    _lock: int | None = field(default=None, repr=False, compare=False)

    @classmethod
    def make(cls) -> Self:
        """Create a directory with mode 0700 and a random name, and remove those of killed jobs."""
        _sweep(Path(tempfile.gettempdir()))
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = os.open(path / _KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(file, "wb") as key:
            key.write(secrets.token_bytes(_KEY_BYTES))
        return cls(path, lock)

    @classmethod
    def at(cls, path: str) -> Self:
        """The directory that another process of the job created; refuses one that another user could have prepared."""
        found = Path(path)
        try:
            state = found.lstat()
        except OSError as error:
            raise DistributedError(
                f"The directory of the job, {path!r}, cannot be found: {error.strerror}. The processes of a job on "
                "one host meet in a temporary directory. Set TMPDIR to one that all of them see; in containers, to one "
                "that is mounted in each."
            ) from None
        is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o077
        if not is_ours or not found.is_absolute() or not _NAME.fullmatch(found.name):
            raise DistributedError(
                f"{path!r} is not a private directory of a job: its name must start with {_PREFIX}, it must belong "
                "to this user and have mode 0700. Another user may have tried to redirect this job."
            )
        return cls(found)

    @property
    def key(self) -> bytes:
        """The secret of the job."""
        try:
            key = (self.path / _KEY).read_bytes()
        except OSError as error:
            raise DistributedError(f"The key in {str(self.path)!r} cannot be read: {error.strerror}.") from None
        if len(key) != _KEY_BYTES:
            raise DistributedError(f"The key in {str(self.path)!r} has {len(key)} bytes instead of {_KEY_BYTES}.")
        return key

    def remove(self) -> None:
        """Remove the directory with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _sweep(folder: Path) -> None:
    """Remove this user's directories whose creator has ended."""
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            state = path.lstat()
            if state.st_uid != os.geteuid() or time.time() - state.st_mtime < _LOCK_GRACE_SECONDS:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)
