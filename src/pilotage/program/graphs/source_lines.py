"""Finds the line of the user's code behind an error or an operation."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

import torch
from torch.fx import Node

_left_out: ContextVar[tuple[str, ...]] = ContextVar("pilotage_files_left_out", default=())

_PACKAGE = Path(__file__).parents[2]

_STEPS = str(_PACKAGE / "capture" / "steps.py")
"""The file that runs forward; frames above it are not part of the model."""

_OURS = (f"{Path(torch.__file__).parent}{os.sep}", f"{_PACKAGE}{os.sep}")


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
    """Whether a file is the user's: not of torch, Pilotage, a facade over it, or left out."""
    if any(part in filename for part in _left_out.get()):
        return False
    return not filename.startswith((*_OURS, *_facades(len(sys.modules)), "<eval_with_key", "<pilotage", "<frozen"))


@contextmanager
def leaving_out(parts: Sequence[str]) -> Iterator[None]:
    """Skip files whose path contains one of these parts, inside the block."""
    token = _left_out.set((*_left_out.get(), *parts))
    try:
        yield
    finally:
        _left_out.reset(token)


def users_line(where: TracebackType | None) -> SourceLine | None:
    """The innermost line of the user's own code in a traceback."""
    return _innermost(traceback.extract_tb(where))


def raised_at(where: TracebackType | None) -> str:
    """The user's line of a traceback as a suffix for an error message, or nothing."""
    return _tail(users_line(where))


def called_from() -> str:
    """The user's current line as a suffix for an error message, or nothing."""
    return _tail(_innermost(traceback.extract_stack()))


def current_line() -> str | None:
    """The current innermost line of the user's forward, as ``file:line``; None outside it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _STEPS:
        if is_users(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def is_called_by_torch() -> bool:
    """Whether torch's own code, not the user's, called the function that we replaced."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (_is_function_mode(frame) or frame.f_code.co_filename.startswith(_OURS[1])):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_OURS[0])


def _is_function_mode(frame: FrameType) -> bool:
    return frame.f_code.co_name == "__torch_function__"


class CurrentLine:
    """Finds the user's current innermost line, fast enough for every operation of a capture."""

    def __init__(self) -> None:
        self._is_users: dict[str, bool] = {}

    def present(self) -> str | None:
        """The line in traceback format; None outside the user's forward."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            if name == _STEPS:
                return None
            if self._belongs_to_user(name):
                return f'File "{name}", line {frame.f_lineno}, in {frame.f_code.co_name}'
            frame = frame.f_back
        return None

    def _belongs_to_user(self, name: str) -> bool:
        known = self._is_users.get(name)
        if known is None:
            known = self._is_users[name] = is_users(name)
        return known


def line_of(operation: Node) -> str | None:
    """The user's innermost line behind an operation, as ``file:line``."""
    found = None
    for text in (operation.meta.get("stack_trace") or "").splitlines():
        if text.strip().startswith('File "'):
            name, _, rest = text.strip()[len('File "') :].partition('"')
            if is_users(name):
                found = f"{name}:{rest.partition('line ')[2].partition(',')[0]}"
    return found


@functools.lru_cache(maxsize=1)
def _facades(modules: int) -> tuple[str, ...]:
    """The folders of packages between the user and Pilotage, which define ``__pilotage_facade__``.

    The number of modules is part of the cache key, so that the search is repeated after new imports.
    """
    facades = [
        module for module in list(sys.modules.values()) if getattr(module, "__dict__", {}).get("__pilotage_facade__")
    ]
    return tuple(f"{folder}{os.sep}" for module in facades for folder in module.__path__)


def _innermost(frames: traceback.StackSummary) -> SourceLine | None:
    for frame in reversed(frames):
        if is_users(frame.filename):
            return SourceLine(frame.filename, frame.lineno or 0, frame.name, (frame.line or "").strip())
    return None


def _tail(line: SourceLine | None) -> str:
    return f"\n  at {line}" if line else ""
