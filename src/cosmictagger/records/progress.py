"""Progress bars, on terminals and in notebooks, and lines above them; a log has the lines of steps instead."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import pilotage

_STAY: ContextVar[bool] = ContextVar("bars stay", default=True)


class Bar(Protocol):
    """The interface of a progress bar."""

    def update(self, count: int) -> object:
        """Advance the bar."""

    def set_postfix_str(self, text: str) -> object:
        """Show the newest numbers."""


class _NoBar:
    def update(self, count: int) -> None: ...

    def set_postfix_str(self, text: str) -> None: ...


@contextmanager
def vanishing_bars() -> Iterator[None]:
    """Bars inside vanish when they are complete."""
    before = _STAY.set(False)
    try:
        yield
    finally:
        _STAY.reset(before)


def bars_stay() -> bool:
    """Whether a complete bar stays on the screen."""
    return _STAY.get()


def say(line: str = "") -> None:
    """Print a line, above the progress bar if there is one."""
    if not pilotage.has_display():
        print(line, flush=True)
        return
    from tqdm import tqdm

    tqdm.write(line, file=sys.stdout)


@contextmanager
def progress(total: int, doing: str, *, shown: bool = True) -> Iterator[Bar]:
    """A bar over a number of steps."""
    if not shown or not pilotage.has_display():
        yield _NoBar()
        return
    with pilotage.progress_bar(total=total, description=doing, unit="step", leave=bars_stay()) as bar:
        yield bar
