"""Files that are there as a whole or not at all, after a crash of the machine too."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".part"
"""Ends the name of a file that is still being written."""


def write_whole(
    path: Path,
    content: bytes | Callable[[BinaryIO], object],
    *,
    mode: int = 0o666,
    durable: bool = True,
) -> None:
    """Write beside the path, force it to the disk, and only then give it its name.

    ``content`` is what to write, or a function that writes it. ``durable=False`` skips forcing it to the disk: for
    files that are of no use after a crash.
    """
    _make_folder(path.parent, durable)
    # A name of its own for each writer: two processes may write the same file at once, and the last one wins.
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
    """Force the names in a folder to the disk: a new name survives a crash only when its folder does."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems sync names by themselves and refuse to be asked.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _make_folder(folder: Path, durable: bool) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing if durable else ():
        sync_folder(made.parent)
