"""Lazy mode without the card: everything runs at once, and what the card would have gathered into graphs is counted."""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from habana_frameworks._emulation.library import Graph, TellOfReading, library
from habana_frameworks._emulation.source_lines import running_line
from habana_frameworks._emulation.summary import Ending, Summary, tell
from pilotage.engine import Warned, log_event

_MODE = "PT_HPU_LAZY_MODE"
_MODES = {"0": "eager", "1": "lazy", "2": "eager"}
_ROOM = 256


class _Watch:
    """Follows the graphs of one process."""

    def __init__(self) -> None:
        self.given = os.environ.get(_MODE, "0")
        if self.given not in _MODES:
            raise ValueError(
                f"{_MODE} is {self.given!r}. Choose one of: 0 (eager), 1 (lazy), 2 (eager, older releases)."
            )
        self.is_lazy = _MODES[self.given] == "lazy"
        self.summary = Summary()
        self._cuts_since_update: dict[int, int] = {}
        self._has_warned = False
        # Kept here: the library calls it for as long as the process runs.
        self.tell_of_reading = TellOfReading(self._after_reading)

    def mark(self) -> None:
        self.look_at_mode()
        if self.is_lazy:
            library().mark()
            self.take_graphs(Ending.MARK, running_line())

    def _after_reading(self) -> None:
        self.take_graphs(Ending.READING, running_line())

    def take_graphs(self, ending: Ending, line: str) -> None:
        """Count the graphs that were cut since this was called last."""
        for graph in _cut_graphs():
            self.summary.count(graph, ending, line)
            for optimizer in self._cuts_since_update:
                self._cuts_since_update[optimizer] += graph.operations > 0

    def after_update(self, optimizer: Optimizer, *_: Any) -> None:
        self.look_at_mode()
        if not (self.is_lazy and _is_on_card(optimizer)):
            return
        cuts = self._cuts_since_update.get(id(optimizer))
        self._cuts_since_update[id(optimizer)] = 0
        if cuts is None or cuts > 1:
            return
        line = running_line()
        self.summary.count_missing(line, cuts)
        if cuts == 0 and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"Two optimizer steps at {line} without mark_step between them: in lazy mode the card would gather both into "
                "one graph. Call htcore.mark_step() after loss.backward() and after optimizer.step().",
                stacklevel=3,
            )

    def look_at_mode(self) -> None:
        """Warn where the mode was changed after the import, once for each change."""
        present = os.environ.get(_MODE, self.given)
        if present != self.given:
            was, self.given = self.given, present
            message = (
                f"{_MODE} was changed to {present!r} after habana_frameworks was imported with {was!r}; the card may ignore "
                f"that, and here it stays {mode()}. Set it before the import."
            )
            warnings.warn(message, stacklevel=4)


@cache
def _watch() -> _Watch:
    return _Watch()


def start() -> None:
    """Begin to watch, by the mode that the environment asks for."""
    watch = _watch()
    register_optimizer_step_post_hook(watch.after_update)
    atexit.register(_end)
    if watch.is_lazy:
        library().gather_graphs(watch.tell_of_reading)


def mode() -> str:
    """``lazy`` or ``eager``."""
    return "lazy" if _watch().is_lazy else "eager"


def mark() -> None:
    """End the graph gathered so far, for the line of the user's program that is running."""
    _watch().mark()


def summary() -> Summary:
    """What lazy mode would have done so far."""
    return _watch().summary


def _is_on_card(optimizer: Optimizer) -> bool:
    return any(each.device.type == "hpu" for group in optimizer.param_groups for each in group["params"])


def _cut_graphs() -> Iterator[Graph]:
    place = (Graph * _ROOM)()
    while count := library().take_graphs(place, _ROOM):
        yield from place[:count]


def _end() -> None:
    watch = _watch()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        watch.look_at_mode()
    for warning in said:
        log_event(Warned(message=str(warning.message)))
    if watch.is_lazy:
        # Python is about to end: the library must not call it any more.
        library().gather_graphs(TellOfReading())
        library().mark()
        watch.take_graphs(Ending.EXIT, "after the last mark_step")
        tell(watch.summary)
