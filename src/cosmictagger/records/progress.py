"""A progress bar, on terminals and in notebooks; a log has the lines of steps instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pilotage


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
def progress(total: int, doing: str, *, shown: bool = True) -> Iterator[Bar]:
    """A bar over a number of steps."""
    if not shown or not pilotage.has_display():
        yield _NoBar()
        return
    with pilotage.progress_bar(total=total, description=doing, unit="step") as bar:
        yield bar
