"""A directory of sealed folders, each named after the digest of what it was built for.

<root>/<digest>/manifest.json     what it was built for, and a digest of every other file
<root>/<digest>.lock              held by the process that builds it
<root>/<digest>.threads           the best number of threads for the program
<root>/.<digest>.<letters>/       an incomplete build, locked by its builder
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pilotage.cache.locks import BuildFolder, abandoned, only_one, remove_abandoned
from pilotage.cache.private_files import checked_directory, private_directory
from pilotage.cache.sealed import MANIFEST, SealedFolder, note_use, read_sealed
from pilotage.errors import ProgramFileError

_DIGEST = "[0-9a-f]{32}"
_ENTRY = re.compile(_DIGEST)
_THREAD_COUNT = re.compile(rf"({_DIGEST})\.threads")
_LEFTOVER = re.compile(rf"\.{_DIGEST}\..+|{_DIGEST}\.(lock|\d+)")


class Store:
    """One directory of compiled code."""

    def __init__(self, root: Path, *, leftovers: str = "(?!)", create: bool = True) -> None:
        self.root = private_directory(root) if create else checked_directory(root)
        self._leftovers = re.compile(leftovers)
        """Names of files of older versions that are no longer used."""

    def folder(self, name: str) -> Path:
        """The folder of an entry, which may not exist."""
        return self.root / name

    def find(self, name: str, parts: Mapping[str, str]) -> SealedFolder | None:
        """A verified entry that was built for these parts; None if there is none.

        Anything else with that name is discarded, and raises ForeignFileError or ProgramFileError.
        """
        folder = self.folder(name)
        if (examined := _facts(folder)) is None:
            return None
        try:
            sealed = read_sealed(folder)
            if sealed is not None:
                _check_parts(sealed, parts)
        except ProgramFileError:
            if _facts(folder) is None:
                # Another process has removed it in the meantime.
                return None
            self.discard(folder, examined)
            raise
        if sealed is not None:
            note_use(folder)
        return sealed

    def discard(self, path: Path, examined: os.stat_result | None = None) -> bool:
        """Move a path out of the way and remove it if possible; links are not followed.

        A path that was replaced since it was examined stays.
        """
        try:
            facts = path.lstat()
            if examined is not None and not os.path.samestat(facts, examined):
                return True
            if not stat.S_ISDIR(facts.st_mode):
                path.unlink()
                return True
            # Renaming is atomic, and also gets rid of files that cannot be removed because others own them.
            aside = Path(tempfile.mkdtemp(dir=self.root, prefix=f".{path.name}."))
        except OSError:
            return False
        with contextlib.suppress(OSError):
            path.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
        return not aside.exists() and not os.path.lexists(path)

    def remove(self, name: str) -> bool:
        """Remove an entry and its thread count unless a running program uses it; returns whether it was removed."""
        folder = self.folder(name)
        with _unused(folder) as is_free:
            gone = is_free and self.discard(folder)
        if gone:
            with contextlib.suppress(OSError):
                self.threads_file(name).unlink()
        return gone

    def build_lock(self, name: str) -> AbstractContextManager[None]:
        """Be the only process that builds an entry; waits for other builders."""
        return only_one(self.root / f"{name}.lock")

    @contextlib.contextmanager
    def building(self, name: str) -> Iterator[Path]:
        """Yield a folder to build in; at the end it becomes the entry, or is removed after an error."""
        with BuildFolder.new(self.root, f".{name}.") as build:
            yield build.path
            self._install(build.path, self.folder(name))

    def _install(self, build: Path, folder: Path) -> None:
        try:
            os.replace(build, folder)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                # Another process was faster; find() verifies its entry.
                return
            if error.errno != errno.ENOTDIR:
                raise
            # A link or a file is in the way.
            self.discard(folder)
            os.replace(build, folder)

    def entries(self) -> list[Path]:
        """All paths with the name of an entry."""
        return sorted(path for path in self.root.iterdir() if _ENTRY.fullmatch(path.name))

    def leftovers(self) -> list[Path]:
        """Builds in progress, and what interrupted builds and older versions left behind."""
        return sorted(path for path in self.root.iterdir() if self._is_leftover(path.name))

    def threads_file(self, name: str) -> Path:
        """The file with the best number of threads for a program."""
        return self.root / f"{name}.threads"

    def thread_counts(self) -> list[tuple[str, Path]]:
        """All such files, with the names of their entries."""
        found = ((_THREAD_COUNT.fullmatch(path.name), path) for path in self.root.iterdir())
        return [(match[1], path) for match, path in found if match]

    def sweep(self) -> None:
        """Remove abandoned leftovers."""
        for path in self.leftovers():
            remove_abandoned(path)

    def _is_leftover(self, name: str) -> bool:
        return bool(_LEFTOVER.fullmatch(name) or self._leftovers.fullmatch(name))


def size_of(path: Path) -> int:
    """The bytes in a file or below a directory, without links and unreadable files."""
    try:
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode):
            return facts.st_size if stat.S_ISREG(facts.st_mode) else 0
        return sum(size_of(Path(entry.path)) for entry in os.scandir(path))
    except OSError:
        return 0


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def name_of(parts: Mapping[str, str]) -> str:
    """The name of the entry for these parts."""
    return hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()[:32]


def _check_parts(sealed: SealedFolder, parts: Mapping[str, str]) -> None:
    written: Any = sealed.manifest.get("parts")
    if written == dict(parts):
        return
    if not isinstance(written, dict):
        raise ProgramFileError(f"The compiled code in {sealed.folder} is not used: its program is not recorded.")
    names = sorted(name for name in {*parts, *written} if parts.get(name) != written.get(name))
    raise ProgramFileError(
        f"The compiled code in {sealed.folder} is not used: it was compiled for something else, with another "
        f"{', '.join(names)}."
    )


@contextlib.contextmanager
def _unused(folder: Path) -> Iterator[bool]:
    """Yield whether no running program uses an entry; none can start to inside the block."""
    manifest = folder / MANIFEST
    if folder.is_symlink() or not folder.is_dir() or not os.path.lexists(manifest):
        yield True
        return
    with abandoned(manifest) as is_free:
        yield is_free


def is_used(folder: Path) -> bool:
    """Whether a running program uses an entry."""
    with _unused(folder) as is_free:
        return not is_free
