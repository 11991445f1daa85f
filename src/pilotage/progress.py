"""Progress bars: widgets in a notebook, a bar in a terminal, and one line every half minute in a log."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TextIO, TypeVar, cast, overload

__all__ = ["Bar", "has_display", "progress_bar"]

SECONDS = 30.0
"""How long a log is silent between two lines."""

_CONTROL = ("\x1b[A", "\r", "\n")
_Item = TypeVar("_Item", covariant=True)


class Bar(Protocol[_Item]):
    """What a bar can do; those of tqdm can do more."""

    n: int
    """How far it is."""

    total: float | None
    """How far it goes, if that is known."""

    def __iter__(self) -> Iterator[_Item]:
        """Go through the items, and advance with each."""

    def __enter__(self) -> Self:
        """Use the bar in a `with` block, which closes it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object:
        """Close the bar."""

    def update(self, n: int = 1) -> object:
        """Advance the bar."""

    def set_postfix_str(self, s: str) -> object:
        """Show the newest numbers behind the bar."""

    def close(self) -> object:
        """Leave the bar as it is."""


@overload
def progress_bar(
    items: None = None, *, total: int | None = None, description: str = "", unit: str = "it", **settings: Any
) -> Bar[Any]: ...


@overload
def progress_bar(
    items: Iterable[_Item], *, total: int | None = None, description: str = "", unit: str = "it", **settings: Any
) -> Bar[_Item]: ...


def progress_bar(
    items: Iterable[Any] | None = None,
    *,
    total: int | None = None,
    description: str = "",
    unit: str = "it",
    **settings: Any,
) -> Bar[Any]:
    """A bar over items, or over a number of steps: a widget in a notebook, a line in a terminal.

    Where standard error is neither, such as the log of a batch job, it writes one line every half minute and one at the
    end. Without tqdm nothing is shown.

    Args:
        items: What to go through; leave it out and call ``update()`` to count by hand.
        total: How many there are; by default the length of ``items``.
        description: The words before the bar.
        unit: What is counted.
        settings: More settings of tqdm, such as ``leave=False`` for a bar that vanishes when it is complete.
    """
    bar = _bar_type()
    if bar is None:
        return _NoBar(items or ())
    # tqdm's own word for the description is taken too.
    settings = {"desc": description, **settings, "total": total, "unit": unit}
    if has_display():
        return cast(Bar[Any], bar(items, dynamic_ncols=True, **settings))
    # At position 0 a bar inside of another one moves no cursor.
    settings |= {"file": _Lines(sys.stderr), "mininterval": SECONDS, "miniters": 1, "position": 0}
    return cast(Bar[Any], bar(items, **settings))


def has_display() -> bool:
    """Whether a bar can move: in a notebook, or where standard error is a terminal."""
    return _in_notebook() or sys.stderr.isatty()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and "IPKernelApp" in running.config


def _bar_type() -> Callable[..., Any] | None:
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets it warns, and draws with letters.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return cast(Callable[..., Any], tqdm)


class _Lines:
    """A stream that makes lines of what tqdm draws: one each half minute, and the last state of a bar that stays."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._newest = self._shown = ""
        self._due = time.monotonic() + SECONDS

    encoding = "utf-8"

    def write(self, text: str) -> None:
        """Keep the newest state, and print it if it is time or the bar is closed."""
        is_end = text == "\n"
        for control in _CONTROL:
            text = text.replace(control, "")
        self._newest = text.strip() or self._newest
        if is_end or time.monotonic() >= self._due:
            self._print()

    def flush(self) -> None:
        """Flush the stream below."""
        self._stream.flush()

    def _print(self) -> None:
        if self._newest and self._newest != self._shown:
            self._stream.write(self._newest + "\n")
            self._shown = self._newest
            self._due = time.monotonic() + SECONDS


class _NoBar(Generic[_Item]):
    """Iterates over the items and shows nothing."""

    def __init__(self, items: Iterable[_Item]) -> None:
        self._items = items
        self.n = 0
        self.total: float | None = None

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._items)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, n: int = 1) -> None:
        self.n += n

    def set_postfix_str(self, s: str) -> None: ...

    def close(self) -> None: ...
