"""Events as log lines.

Lines go to the logger ``pilotage``. If the application has not set up logging, they go to standard error, from the
level in PILOTAGE_LOG_LEVEL on, by default INFO.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from pilotage.events import BackendChosen, Checked, Event, Noted, TierChanged, Warned, between_calls
from pilotage.options import environment

logger = logging.getLogger("pilotage")


@between_calls
def log_event(event: Event) -> None:
    """A listener that logs the choice of device, tier changes, warnings and notes."""
    match event:
        case BackendChosen():
            _log(logging.INFO, f"Running {_named(event.program)}on {event.device}, tier {event.tier}: {event.reason}.")
        case TierChanged():
            _log(logging.INFO, f"Continuing in tier {event.tier} after update {event.updates}: {event.reason}.")
        case Checked():
            _log(logging.INFO, event.summary)
        case Noted():
            _log(logging.INFO if event.can_be_changed else logging.DEBUG, event.message)
        case Warned():
            _log(logging.WARNING, event.message)
        case _:
            pass


def _named(program: str | None) -> str:
    return "" if program is None else f"{program!r} "


def _log(level: int, text: str) -> None:
    if not logger.hasHandlers():
        _install()
    logger.log(level, text)


def _install() -> None:
    handler = _StandardError()
    handler.setFormatter(_Line())
    handler.addFilter(_WithoutRepetition())
    logger.addHandler(handler)
    logger.setLevel(environment.log_level())


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, also after it was replaced."""

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


class _WithoutRepetition(logging.Filter):
    """Passes each text only once."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._seen
        self._seen.add(text)
        return is_new
