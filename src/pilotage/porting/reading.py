"""Reads scripts from files and packages; a file that cannot be read is an error of one line."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from pilotage.errors import PortingError

__all__ = ["paths_of_scripts", "text_of"]

SUFFIXES = (".py", ".ipynb")
MOST_LINES = 20_000
"""Longer files are generated, and contain no training loop to restructure."""

_LEFT_OUT = {"__pycache__", "node_modules", "site-packages", ".ipynb_checkpoints"}


def paths_of_scripts(paths: Iterable[Path]) -> list[Path]:
    """The scripts and notebooks among the given files and inside of the given folders, each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        for each in _scripts_at(path):
            found.setdefault(each.resolve(), each)
    return list(found.values())


def text_of(path: Path) -> str:
    """The text of a script in its own encoding."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PortingError(f"{path}: this cannot be read: {error.strerror or error}.") from None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        text = "\0"
    if "\0" in text:
        raise PortingError(f"{path}: this is not a text file.")
    if path.suffix != ".ipynb" and (lines := text.count("\n")) > MOST_LINES:
        raise PortingError(
            f"{path} has {lines:,} lines; files of up to {MOST_LINES:,} are read. Leave it out, or split it."
        )
    return text


def _scripts_at(path: Path) -> Iterator[Path]:
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise PortingError(f"{path}: this cannot be read: {error.strerror or error}.") from None
    if is_folder:
        # Links to folders are not followed, so that a loop of links ends.
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(each for each in folders if each not in _LEFT_OUT and not each.startswith("."))
            yield from (Path(folder, file) for file in sorted(files) if file.endswith(SUFFIXES))
    elif is_file:
        yield path
    elif path.is_symlink():
        raise PortingError(f"{path}: this link leads nowhere, or to itself.")
    else:
        raise PortingError(f"{path}: the file does not exist.")
