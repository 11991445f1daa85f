"""Write files that are complete or absent, even after a crash of the machine."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".part"
"""The suffix of a file that is being written."""


def write_whole(
    path: Path,
    content: bytes | Callable[[BinaryIO], object],
    *,
    mode: int = 0o666,
    durable: bool = True,
) -> None:
    """Write to a temporary file next to the path, sync it to disk, then rename it.

    ``content`` is the bytes, or a function that writes them. ``durable=False`` skips the sync, for files that are
    useless after a crash.
    """
    _make_folder(path.parent, durable)
    # A unique name: if two processes write the same file at once, the last one wins.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        handle = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w+b") as stream:
            if callable(content):
                content(stream)
            else:
                stream.write(content)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk: a new file survives a crash only if its folder is synced."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems sync names themselves and reject the request.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _make_folder(folder: Path, durable: bool) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing if durable else ():
        sync_folder(made.parent)
