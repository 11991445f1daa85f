"""The drop-in's log lines, in PopTorch's format."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, TextIO

__all__ = ["backend_logger", "limited_repeats", "logger", "setLogLevel", "setPopartLogLevel"]

TRACE_ALL = 1
TRACE = 5
DEBUG_IR = 8
OFF = logging.CRITICAL + 10

_LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERR": logging.ERROR,
    "OFF": OFF,
}
_INTERNAL_LEVELS = {"TRACE_ALL": TRACE_ALL, "DEBUG_IR": DEBUG_IR}
_INTEGERS = {0: "TRACE", 1: "DEBUG", 2: "INFO", 3: "WARN", 4: "ERR", 6: "OFF"}
_SPOKEN = {TRACE_ALL: "trace", TRACE: "trace", DEBUG_IR: "debug"}
_COLOURS = {"trace": "37", "debug": "36", "info": "32", "warning": "33;1", "error": "31;1", "critical": "41;1"}

logger = logging.getLogger("poptorch::python")
"""Messages of the front end."""

backend_logger = logging.getLogger("poptorch::backend")
"""Messages of the layer below, written to POPTORCH_LOG_DEST."""

_engine_logger = logging.getLogger("pilotage")


class _StandardStream(logging.StreamHandler[TextIO]):
    """Looks up the standard stream for each line, so that code which replaces the stream gets the line."""

    def __init__(self, name: str) -> None:
        self._stream_name = name
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        stream: TextIO = getattr(sys, self._stream_name)
        return stream

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        raise AttributeError(f"This handler always writes to sys.{self._stream_name}.")


class _LineFormatter(logging.Formatter):
    """``[HH:MM:SS.mmm] [logger] [level] text``, coloured on a terminal."""

    def __init__(self, handler: logging.StreamHandler[Any]) -> None:
        super().__init__()
        self._handler = handler

    def format(self, record: logging.LogRecord) -> str:
        level = _SPOKEN.get(record.levelno, record.levelname.lower())
        shown = f"\033[{_COLOURS.get(level, '0')}m{level}\033[0m" if self._is_terminal() else level
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"[{moment}.{int(record.msecs):03d}] [{record.name}] [{shown}] {record.getMessage()}"
        return "\n".join([line, self.formatException(record.exc_info)]) if record.exc_info else line

    def _is_terminal(self) -> bool:
        stream = self._handler.stream
        return bool(stream) and stream.isatty()


class _RepeatFilter(logging.Filter):
    """Shows the same text a limited number of times, and says once when it starts to hide it."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._seen: Counter[tuple[int, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        key = (record.levelno, record.getMessage())
        self._seen[key] += 1
        if self._seen[key] == self._limit + 1:
            record.msg, record.args = "A message was repeated often; see poptorch.Options().maxRepeatLogs(None).", ()
            return True
        return self._seen[key] <= self._limit


@contextlib.contextmanager
def limited_repeats(limit: int) -> Iterator[None]:
    """Show the same message at most ``limit`` times while the block runs: the effect of ``maxRepeatLogs``."""
    repeats = _RepeatFilter(limit)
    for each in (logger, backend_logger):
        each.addFilter(repeats)
    try:
        yield
    finally:
        for each in (logger, backend_logger):
            each.removeFilter(repeats)


def setLogLevel(level: str | int) -> None:
    """Show messages of this level and above: TRACE, DEBUG, INFO, WARN, ERR or OFF, or 0, 1, 2, 3, 4, 6."""
    number = _level_number(level)
    logger.setLevel(number)
    backend_logger.setLevel(number)


def setPopartLogLevel(level: str) -> None:
    """Set the log level of the engine, which takes PopART's place here."""
    if not isinstance(level, str) or level not in _LEVELS:
        raise ValueError(f"Level must be one of {_listed(_LEVELS)}, not {level!r}.")
    if not _engine_logger.handlers:
        _install(_engine_logger, _handler_for("stderr"))
    _engine_logger.setLevel(_LEVELS[level])


def _level_number(level: str | int) -> int:
    if isinstance(level, int):
        if isinstance(level, bool) or level not in _INTEGERS:
            raise ValueError(f"Invalid log level integer: {level!r}. Valid values are {_listed(_INTEGERS)}")
        return _LEVELS[_INTEGERS[level]]
    known = _LEVELS | _INTERNAL_LEVELS
    if level not in known:
        raise ValueError(f"Unknown log level: {level}. Valid values are {_listed(_LEVELS)}")
    return known[level]


def _listed(values: dict[str, int] | dict[int, str]) -> str:
    *first, last = sorted(str(value) for value in values)
    return f"{', '.join(first)} and {last}"


def _handler_for(destination: str) -> logging.StreamHandler[Any]:
    handler: logging.StreamHandler[Any]
    if destination in ("stdout", "stderr"):
        handler = _StandardStream(destination)
    else:
        handler = logging.FileHandler(destination, delay=True)
    handler.setFormatter(_LineFormatter(handler))
    handler.set_name("poptorch")
    return handler


def _install(target: logging.Logger, handler: logging.Handler) -> None:
    for old in [each for each in target.handlers if each.get_name() == handler.get_name()]:
        target.removeHandler(old)
        old.close()
    target.addHandler(handler)


def _configure() -> None:
    """Apply POPTORCH_LOG_LEVEL, POPTORCH_LOG_DEST and POPART_LOG_LEVEL at import, as PopTorch does."""
    _install(logger, _handler_for("stderr"))
    _install(backend_logger, _handler_for(os.environ.get("POPTORCH_LOG_DEST") or "stderr"))
    setLogLevel(os.environ.get("POPTORCH_LOG_LEVEL") or "WARN")
    engine_level = os.environ.get("POPART_LOG_LEVEL")
    if engine_level:
        setPopartLogLevel(engine_level)


_configure()
