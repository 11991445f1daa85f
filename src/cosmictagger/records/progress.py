"""A progress bar, only on terminals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


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
    if not shown or not sys.stderr.isatty():
        yield _NoBar()
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=doing, unit="step", dynamic_ncols=True) as bar:
        yield bar
