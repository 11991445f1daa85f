"""Describes errors of the compiler: many of Inductor's are assertions without a text."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from torch.fx import Node

_FRAMES = 3
"""The number of innermost frames that describe an error without a text."""

_TYPES = re.compile(r"^(?:[\w.]+(?:Error|Exception|Interrupt|Warning|Iteration|Contained)?:\s*)*")
"""The names of nested errors in front of the message of the innermost one."""

_OPERATION = re.compile(r"^\s*target: (\S+)", re.MULTILINE)
"""The line in Inductor's message that names the operation."""


def described(error: BaseException) -> str:
    """An error in one line: its type, its message or where it was raised, and the operation that was compiled."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    text = f"{type(error).__name__}: {first}".rstrip(": ")
    if not _TYPES.sub("", first):
        text += f", raised in {_place(error.__traceback__)}" if error.__traceback__ is not None else ""
    operation = _operation(error)
    return f"{text}, at the operation {operation}" if operation and operation not in text else text


def _place(trace: TracebackType) -> str:
    """The innermost frames, and the line of the last one."""
    frames = traceback.extract_tb(trace)[-_FRAMES:]
    places = " > ".join(f"{_shortened(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)
    return f"{places} ({frames[-1].line})" if frames[-1].line else places


def _shortened(path: str) -> str:
    """A path from the package on."""
    parts = Path(path).parts
    start = max((number + 1 for number, part in enumerate(parts) if part in ("site-packages", "src")), default=0)
    return "/".join(parts[start:][-4:])


def _operation(error: BaseException) -> str | None:
    """The operation that was compiled: named in Inductor's message, or the node of the innermost frame that has one."""
    found = _OPERATION.search(str(error))
    if found is not None:
        return found.group(1)
    for frame in reversed(list(_frames(error.__traceback__))):
        for value in frame.tb_frame.f_locals.values():
            if isinstance(value, Node) and value.op == "call_function":
                return str(value.target)
    return None


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
