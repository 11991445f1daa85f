"""The log of a run, in a file and on the console."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pilotage
from cosmictagger.errors import ConfigurationError
from cosmictagger.records.progress import say

LOGGER = logging.getLogger("cosmictagger")
FORMAT = "%(asctime)s - %(levelname)s - %(message)s"

QUIET_ON_TERMINALS = "step"
"""Set on records that a progress bar replaces."""


@contextmanager
def process_log(folder: Path, *, writes: bool = True, console: bool = True) -> Iterator[logging.Logger]:
    """Log to ``process.log`` and, unless disabled, to the console; only one of several processes writes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handlers: list[logging.Handler] = [logging.NullHandler()]
        if writes:
            handlers = [logging.FileHandler(folder / "process.log"), *([_Console()] if console else [])]
    except OSError as error:
        raise ConfigurationError(
            f"output_dir={folder} cannot be written to ({error.strerror}). Choose another folder."
        ) from None
    level, propagates = LOGGER.level, LOGGER.propagate
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
        LOGGER.addHandler(handler)
    try:
        yield LOGGER
    finally:
        for handler in handlers:
            LOGGER.removeHandler(handler)
            handler.close()
        LOGGER.setLevel(level)
        LOGGER.propagate = propagates


class _Console(logging.Handler):
    """Prints above a progress bar; on a terminal, the bar replaces step lines."""

    def emit(self, record: logging.LogRecord) -> None:
        if not (pilotage.has_display() and getattr(record, QUIET_ON_TERMINALS, False)):
            say(self.format(record))
