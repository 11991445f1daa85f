"""A progress bar, only on terminals."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

Progress = Callable[[int, int], None]
"""Called with the number of events done and the total."""


@contextlib.contextmanager
def terminal_progress(text: str) -> Iterator[Progress | None]:
    """A bar on standard error if it is a terminal and tqdm is installed; else None."""
    bar_type = _bar_type() if sys.stderr.isatty() else None
    if bar_type is None:
        yield None
        return
    with bar_type(desc=text, unit=" events", total=0, leave=True) as bar:

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


def _bar_type() -> Callable[..., contextlib.AbstractContextManager[Any]] | None:
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        return None
    return tqdm  # type: ignore[no-any-return]
