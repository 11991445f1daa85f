"""Sealed folders: a manifest lists the size and SHA-256 of every file, and its own digest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
import weakref
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pilotage.cache.locks import try_lock
from pilotage.cache.private_files import (
    ForeignFileError,
    digest_of,
    open_private,
    opened,
    read_bytes,
    refuse_other_kind,
)
from pilotage.errors import ProgramFileError

MANIFEST = "manifest.json"
_MAX_MANIFEST_BYTES = 2**24
_MAX_NAMED = 5
"""How many damaged files a message names."""

_LOCK_ATTEMPTS, _LOCK_PAUSE = 20, 0.01


class UnsealedError(ProgramFileError):
    """A folder was written by an older version."""


class SealedFolder:
    """A folder whose files were verified.

    It holds a shared lock, so that no cleanup removes the folder while it is in use. Files that are read through it are
    verified again. Libraries are loaded by path, which is safe because only this user can write to the directory.
    """

    def __init__(self, folder: Path, text: bytes, manifest: Mapping[str, Any], descriptor: int) -> None:
        self.folder = folder
        self.text = text
        """The text of the manifest."""
        self.manifest = manifest
        weakref.finalize(self, os.close, descriptor)

    def files(self) -> Collection[str]:
        """The names of its files, except the manifest."""
        files: Mapping[str, Any] = self.manifest["files"]
        return files.keys()

    def read(self, name: str) -> bytes:
        """Read a file and verify these bytes."""
        size, digest = self.manifest["files"][name]
        with _naming(self.folder), opened(self.folder / name) as descriptor:
            content = read_bytes(descriptor, size)
            if hashlib.sha256(content).hexdigest() != digest:
                raise ProgramFileError(f"{name} is not what was written")
        return content


def seal(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a complete folder."""
    make_private(folder)
    files: dict[str, list[Any]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST:
            data = path.read_bytes()
            files[path.relative_to(folder).as_posix()] = [len(data), hashlib.sha256(data).hexdigest()]
    manifest = {**content, "created": time.time(), "files": files}
    text = json.dumps({**manifest, "seal": _digest(manifest)}, indent=1)
    descriptor = os.open(folder / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def make_private(folder: Path) -> None:
    """Remove all rights of other users; raises if the folder contains a link."""
    for path in (folder, *folder.rglob("*")):
        refuse_other_kind(path, path.lstat(), is_directory=path.is_dir())
        path.chmod(0o700 if path.is_dir() else 0o600)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder; its files are not verified."""
    with _naming(folder), opened(folder, is_directory=True) as within, opened(MANIFEST, within=within) as descriptor:
        return _parsed(read_bytes(descriptor, _MAX_MANIFEST_BYTES))


def read_sealed(folder: Path) -> SealedFolder | None:
    """Verify a folder; None if it is being removed.

    Raises ForeignFileError if another user could have written to it, and ProgramFileError if it is damaged.
    """
    with _naming(folder), opened(folder, is_directory=True) as within:
        descriptor = open_private(MANIFEST, within=within)
        try:
            if not _in_use(descriptor):
                os.close(descriptor)
                return None
            text = read_bytes(descriptor, _MAX_MANIFEST_BYTES)
            manifest = _parsed(text)
            _check_files(within, manifest["files"])
        except BaseException:
            os.close(descriptor)
            raise
    return SealedFolder(folder, text, manifest, descriptor)


def note_use(folder: Path) -> None:
    """Record that a folder was used now; does nothing in a read-only cache."""
    try:
        os.utime(folder / MANIFEST, follow_symlinks=False)
    except OSError:
        return


def _in_use(descriptor: int) -> bool:
    """Take a shared lock on a manifest; a process that removes or lists the folder holds it briefly."""
    for _ in range(_LOCK_ATTEMPTS):
        locked = try_lock(descriptor, shared=True)
        if locked is not False:
            return os.fstat(descriptor).st_nlink > 0
        time.sleep(_LOCK_PAUSE)
    return False


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
        if "seal" not in manifest and {"parts", "tuning", "digests"} <= manifest.keys():
            raise UnsealedError(f"{MANIFEST} has no seal: an older version wrote it")
        stated = manifest.pop("seal", None)
        if stated != _digest(manifest):
            raise ProgramFileError(f"{MANIFEST} is not what was written")
        _check_form(manifest)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ProgramFileError(f"no readable manifest ({type(error).__name__}: {error})") from error
    return dict(manifest)


def _check_form(manifest: Mapping[str, Any]) -> None:
    float(manifest["created"])
    for size, digest in manifest["files"].values():
        if not isinstance(size, int) or not isinstance(digest, str):
            raise TypeError("files must be listed with their size and digest")


def _check_files(within: int, files: Mapping[str, list[Any]]) -> None:
    changed: list[str] = []
    missing = set(files)
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    for name, descriptor in _walk(within, "", folders, changed):
        missing.discard(name)
        size, digest = files.get(name, [-1, ""])
        if os.fstat(descriptor).st_size != size or digest_of(descriptor, size) != digest:
            changed.append(name)
        if len(changed) > _MAX_NAMED:
            break
    if changed := sorted({*changed, *missing}):
        names = ", ".join(changed[:_MAX_NAMED]) + (" and more" if len(changed) > _MAX_NAMED else "")
        raise ProgramFileError(f"{names} is not what was written")


def _walk(within: int, prefix: str, folders: set[str], changed: list[str]) -> Iterator[tuple[str, int]]:
    """All files below a directory with their descriptors, except the manifest; skips unknown directories."""
    for name in sorted(os.listdir(within)):
        path = f"{prefix}{name}"
        if path == MANIFEST:
            continue
        is_directory = stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
        if is_directory and path not in folders:
            changed.append(path)
            continue
        with opened(name, within=within, is_directory=is_directory) as descriptor:
            if is_directory:
                yield from _walk(descriptor, f"{path}/", folders, changed)
            else:
                yield path, descriptor


@contextlib.contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Prefix errors with the name of the folder."""
    try:
        yield
    except (ForeignFileError, UnsealedError) as error:
        raise type(error)(f"The compiled code in {folder} is not used: {error}.") from error
    except ProgramFileError as error:
        raise ProgramFileError(f"The compiled code in {folder} is damaged: {error}.") from error
    except OSError as error:
        raise ProgramFileError(f"The compiled code in {folder} cannot be read: {error}.") from error


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
