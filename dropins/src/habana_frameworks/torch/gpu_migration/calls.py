"""What became of each call, and the log that tells."""

from __future__ import annotations

import linecache
import os
from enum import StrEnum
from functools import cache
from typing import Any

from torch import Tensor

from habana_frameworks._emulation.source_lines import NOWHERE, running_line
from pilotage.engine import logger

_LEVEL = "GPU_MIGRATION_LOG_LEVEL"


class Kind(StrEnum):
    """How near the card comes to what was asked for."""

    MATCH = "hpu_match"
    """The same function of the card."""
    MODIFIED = "hpu_modified"
    """The same function with other arguments, or another one to the same end."""
    MISMATCH = "hpu_mismatch"
    """Nothing on the card answers to it."""


@cache
def is_logged() -> bool:
    """Say whether calls are written down: GPU_MIGRATION_LOG_LEVEL=1 asks for it."""
    level = os.environ.get(_LEVEL)
    if level not in (None, "", "1"):
        logger.warning(f"{_LEVEL} is {level!r}; here 1 writes down each call, and everything else nothing.")
    return level == "1"


def note(kind: Kind, before: str, after: str) -> None:
    """Write down one call: the line of the program, what it asked for, and what became of it."""
    if is_logged():
        line = running_line()
        file, _, number = line.rpartition(":")
        context = "" if line == NOWHERE else linecache.getline(file, int(number)).strip()
        logger.info(f"{line}\n    [context]: {context}\n    [{kind.value}]: {before} --> {after}")


def said(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A call as one would write it, with tensors by their shape alone."""
    if name.endswith(".__init__"):
        name, args = name.removesuffix(".__init__"), args[1:]
    words = [_short(each) for each in args] + [f"{key}={_short(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(words)})"


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"Tensor{tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{type(value).__name__}(...)"
