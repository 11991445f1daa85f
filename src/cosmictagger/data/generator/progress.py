"""A progress bar, on terminals and in notebooks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pilotage
from cosmictagger.records.progress import bars_stay

Progress = Callable[[int, int], None]
"""Called with the number of events done and the total."""


@contextlib.contextmanager
def terminal_progress(text: str) -> Iterator[Progress | None]:
    """A bar on a terminal or in a notebook; else None."""
    if not pilotage.has_display():
        yield None
        return
    with pilotage.progress_bar(total=0, description=text, unit=" events", leave=bars_stay()) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show


def occasional(report: Progress, times: int = 4) -> Progress:
    """A progress that reports only a few times, for logs."""

    def maybe(done: int, total: int) -> None:
        if done * times // total != (done - 1) * times // total:
            report(done, total)

    return maybe
