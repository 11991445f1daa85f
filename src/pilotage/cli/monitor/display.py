"""Print lines to a terminal, with colours if rich is installed; once, or repeatedly in place."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pilotage.cli.monitor.lines import ASCII, BOXES, Drawing, Line
from pilotage.cli.monitor.table import Cell

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["coloured", "in_place", "plain", "show", "terminal_drawing", "terminal_width"]

STYLES = {
    "rule": "dim",
    "title": "bold",
    "id": "cyan",
    "note": "dim",
    "emulated": "magenta",
    "ready": "green",
    "in use": "bold green",
    "building": "yellow",
    "outdated": "dim",
    "leftover": "yellow",
    "damaged": "red",
    "foreign": "bold red",
    "compiled": "green",
    "graph": "yellow",
    "eager": "magenta",
    "running": "bold",
    "idle": "dim",
    "compiling": "yellow",
    "starting": "yellow",
}
_HOME_AND_CLEAR = "\x1b[H\x1b[J"
_DEFAULT_SIZE = (100, 24)


def terminal_width() -> int:
    """The width of the terminal, or 100 without one."""
    return shutil.get_terminal_size(_DEFAULT_SIZE).columns


def terminal_drawing() -> Drawing:
    """The characters that this terminal can show."""
    return BOXES if _has_colours() else ASCII


def show(lines: list[Line]) -> None:
    """Print lines once."""
    if _has_colours():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(coloured(lines))
        return
    print(_encodable(plain(lines)), flush=True)


@contextlib.contextmanager
def in_place() -> Iterator[Callable[[list[Line]], None]]:
    """Yield a function that replaces the lines shown before; without a terminal, it appends."""
    if _has_colours():
        from rich.live import Live

        with Live(screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
            yield lambda lines: live.update(coloured(_cropped(lines)), refresh=True)
    elif sys.stdout.isatty():
        yield lambda lines: print(_HOME_AND_CLEAR + _encodable(plain(_cropped(lines))), flush=True)
    else:
        yield lambda lines: print(_encodable(plain(lines)) + "\n", flush=True)


def plain(lines: list[Line]) -> str:
    """Lines as plain text."""
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


def coloured(lines: list[Line]) -> Text:
    """Lines as a text for rich."""
    from rich.text import Text

    whole = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        whole.append("\n" if number else "")
        for piece in line:
            whole.append(piece.text, style=STYLES.get(piece.style, ""))
    return whole


def _cropped(lines: list[Line]) -> list[Line]:
    """The lines that fit the height of the terminal, less one so that the first line does not scroll out."""
    room = max(2, shutil.get_terminal_size(_DEFAULT_SIZE).lines - 1)
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], [Cell(f"{len(lines) - room + 1} more lines do not fit", "note")]]


def _has_colours() -> bool:
    encodes_boxes = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return sys.stdout.isatty() and encodes_boxes and importlib.util.find_spec("rich") is not None


def _encodable(text: str) -> str:
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, errors="replace").decode(encoding)
