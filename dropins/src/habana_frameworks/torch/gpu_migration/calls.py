"""The log of replaced calls."""

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
    """How closely the card matches a CUDA call."""

    MATCH = "hpu_match"
    """The card has the same function."""
    MODIFIED = "hpu_modified"
    """The same function with other arguments, or another one with the same effect."""
    MISMATCH = "hpu_mismatch"
    """The card has no counterpart."""


@cache
def is_logged() -> bool:
    """Whether GPU_MIGRATION_LOG_LEVEL=1 asks for a log of all calls."""
    level = os.environ.get(_LEVEL)
    if level not in (None, "", "1"):
        logger.warning(f"{_LEVEL} is {level!r}; only 1 has an effect here, it logs each call.")
    return level == "1"


def log_call(kind: Kind, before: str, after: str) -> None:
    """Log one call: the line of the program, the call and its replacement."""
    if is_logged():
        line = running_line()
        file, _, number = line.rpartition(":")
        context = "" if line == NOWHERE else linecache.getline(file, int(number)).strip()
        logger.info(f"{line}\n    [context]: {context}\n    [{kind.value}]: {before} --> {after}")


def call_text(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A call as source text, with only the shapes of tensors."""
    if name.endswith(".__init__"):
        name, args = name.removesuffix(".__init__"), args[1:]
    words = [_short(each) for each in args] + [f"{key}={_short(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(words)})"


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"Tensor{tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{type(value).__name__}(...)"
