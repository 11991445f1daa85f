"""Finds the running line of the user's program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import torch

_FOREIGN = (str(Path(torch.__file__).parent) + "/", str(Path(__file__).parents[1]) + "/", "<")
_STANDARD_LIBRARY = str(Path(os.__file__).parent) + "/"
NOWHERE = "in a thread of torch's own"


def running_line() -> str:
    """Return ``file:line`` of the innermost frame outside torch, the standard library and this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not _is_foreign(name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return NOWHERE


def _is_foreign(file: str) -> bool:
    return file.startswith(_FOREIGN) or (file.startswith(_STANDARD_LIBRARY) and "/site-packages/" not in file)
