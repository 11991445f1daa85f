"""What the engine says, as log lines.

Lines go to the logger ``pilotage``. Where the application has set up logging, it decides what becomes of them;
otherwise they go to standard error from the level INFO on, or from the one that PILOTAGE_LOG_LEVEL names.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from pilotage.events import BackendChosen, Event, Noted, TierChanged, Warned
from pilotage.options import environment

logger = logging.getLogger("pilotage")


def log_event(event: Event) -> None:
    """Listener that writes down which device was chosen and why, and what the user should know."""
    match event:
        case BackendChosen():
            _say(logging.INFO, f"Running {_named(event.program)}on {event.device}, tier {event.tier}: {event.reason}.")
        case TierChanged():
            _say(logging.INFO, f"Going on in the tier {event.tier} after update {event.updates}: {event.reason}.")
        case Noted():
            _say(logging.INFO if event.can_be_changed else logging.DEBUG, event.message)
        case Warned():
            _say(logging.WARNING, event.message)
        case _:
            pass


def _named(program: str | None) -> str:
    return "" if program is None else f"{program!r} "


def _say(level: int, text: str) -> None:
    if not logger.hasHandlers():
        _install()
    logger.log(level, text)


def _install() -> None:
    handler = _StandardError()
    handler.setFormatter(_Line())
    handler.addFilter(_OnceEach())
    logger.addHandler(handler)
    logger.setLevel(environment.log_level())


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error as it is at that moment, whoever has replaced it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        raise AttributeError("This handler always writes to sys.stderr.")


class _Line(logging.Formatter):
    """``[HH:MM:SS.mmm] [pilotage] [info] text``."""

    def format(self, record: logging.LogRecord) -> str:
        moment = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}"
        return f"[{moment}] [{record.name}] [{record.levelname.lower()}] {record.getMessage()}"


class _OnceEach(logging.Filter):
    """Lets the same text through once."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._said
        self._said.add(text)
        return is_new
