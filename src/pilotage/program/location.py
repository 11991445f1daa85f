"""Which line of the user's code an error or an operation came from."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import torch

_OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent))


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's code."""

    file: str
    number: int
    function: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number} in {self.function}: {self.text}"


def is_users(filename: str) -> bool:
    """Whether a file belongs to neither torch nor Pilotage."""
    return not filename.startswith((*_OURS, "<eval_with_key", "<frozen"))


def users_line(where: TracebackType | None) -> SourceLine | None:
    """The innermost line of the user's own code in a traceback."""
    frames = [frame for frame in traceback.extract_tb(where) if is_users(frame.filename)]
    if not frames:
        return None
    last = frames[-1]
    return SourceLine(last.filename, last.lineno or 0, last.name, (last.line or "").strip())


def said_by(where: TracebackType | None) -> str:
    """The user's line as the tail of an error message, or nothing."""
    line = users_line(where)
    return f"\n  at {line}" if line else ""
