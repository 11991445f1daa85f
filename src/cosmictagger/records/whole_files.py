"""Files that are either all there or not there at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".part"
"""Ends the name of a file that is still being written."""


def write_whole(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write beside the path, force it to the disk, and only then give it its name."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _force_folder(folder.parent)
    part = path.with_name(path.name + SUFFIX)
    with part.open("wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    _force_folder(path.parent)


def _force_folder(folder: Path) -> None:
    """A rename is on the disk when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
