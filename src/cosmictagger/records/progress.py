"""A progress bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """What is told about progress."""

    def update(self, count: int) -> object:
        """Count on."""

    def set_postfix_str(self, text: str) -> object:
        """Show the newest numbers."""


class _NoBar:
    def update(self, count: int) -> None: ...

    def set_postfix_str(self, text: str) -> None: ...


@contextmanager
def progress(total: int, doing: str, *, shown: bool = True) -> Iterator[Bar]:
    """A bar over so many steps."""
    if not shown or not sys.stderr.isatty():
        yield _NoBar()
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=doing, unit="step", dynamic_ncols=True) as bar:
        yield bar
