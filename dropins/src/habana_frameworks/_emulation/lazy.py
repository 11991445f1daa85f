"""Lazy mode without the card: operations run at once, and the graphs that the card would have built are counted."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from habana_frameworks._emulation.events import EventId, publish
from habana_frameworks._emulation.library import Graph, ReadCallback, library
from habana_frameworks._emulation.source_lines import running_line
from habana_frameworks._emulation.summary import Ending, Summary, report
from pilotage.engine import Warned, log_event

_MODE = "PT_HPU_LAZY_MODE"
_MODES = {"0": "eager", "1": "lazy", "2": "eager"}
_CHUNK = 256


class _Counter:
    """Counts the graphs of this process."""

    def __init__(self) -> None:
        self.mode_given = os.environ.get(_MODE, "0")
        if self.mode_given not in _MODES:
            raise ValueError(
                f"{_MODE} is {self.mode_given!r}. Choose one of: 0 (eager), 1 (lazy), 2 (eager, older releases)."
            )
        self.is_lazy = _MODES[self.mode_given] == "lazy"
        self.summary = Summary()
        self._cuts_since_update: dict[int, int] = {}
        self._has_warned = False
        self._last = Ending.MARK
        # Kept alive here: the library calls it until the process ends.
        self.read_callback = ReadCallback(self._after_reading)

    def mark(self, ending: Ending) -> None:
        self.check_mode()
        if self.is_lazy:
            library().mark()
            # A mark straight after a fused optimizer's own is the usual way to write a step, so it is not idle.
            follows_call, self._last = self._last is Ending.CALL, ending
            self.take_graphs(ending, running_line(), may_be_empty=follows_call)
            publish(EventId.MARK_STEP)

    def _after_reading(self) -> None:
        self.take_graphs(Ending.READING, running_line())

    def take_graphs(self, ending: Ending, line: str, *, may_be_empty: bool = False) -> None:
        """Count the graphs that ended since the last call."""
        for graph in _cut_graphs():
            if may_be_empty and graph.operations == 0:
                continue
            self._publish(graph, is_compiled=self.summary.count(graph, ending, line))
            for optimizer in self._cuts_since_update:
                self._cuts_since_update[optimizer] += graph.operations > 0

    @staticmethod
    def _publish(graph: Graph, *, is_compiled: bool) -> None:
        if graph.operations:
            recipe = f"{graph.structure ^ graph.shapes:016x}"
            publish(EventId.CACHE_MISS if is_compiled else EventId.CACHE_HIT, recipe=recipe)
            if is_compiled:
                publish(EventId.GRAPH_COMPILATION, recipe=recipe, duration=0)

    def after_update(self, optimizer: Optimizer, *_: Any) -> None:
        self.check_mode()
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
                f"Two optimizer steps at {line} without mark_step between them: in lazy mode the card would compile "
                "both into one graph. Call htcore.mark_step() after loss.backward() and after optimizer.step().",
                stacklevel=3,
            )

    def check_mode(self) -> None:
        """Warn if the mode was changed after the import, once per change."""
        present = os.environ.get(_MODE, self.mode_given)
        if present != self.mode_given:
            was, self.mode_given = self.mode_given, present
            message = (
                f"{_MODE} was changed to {present!r} after habana_frameworks was imported with {was!r}; the card may "
                f"ignore this, and the emulation stays {mode()}. Set it before the import."
            )
            warnings.warn(message, stacklevel=4)


@cache
def _counter() -> _Counter:
    return _Counter()


def start() -> None:
    """Start counting, in the mode of PT_HPU_LAZY_MODE."""
    counter = _counter()
    register_optimizer_step_post_hook(counter.after_update)
    atexit.register(_end)
    if counter.is_lazy:
        library().gather_graphs(counter.read_callback)


def mode() -> str:
    """``lazy`` or ``eager``."""
    return "lazy" if _counter().is_lazy else "eager"


def mark(*, inside_a_call: bool = False) -> None:
    """End the current graph, at the running line of the user's program.

    A call that marks the step itself, such as a fused optimizer's step, is never reported as idle or excessive.
    """
    _counter().mark(Ending.CALL if inside_a_call else Ending.MARK)


def summary() -> Summary:
    """The graphs that lazy mode would have run so far."""
    return _counter().summary


def _is_on_card(optimizer: Optimizer) -> bool:
    return any(each.device.type == "hpu" for group in optimizer.param_groups for each in group["params"])


def _cut_graphs() -> Iterator[Graph]:
    place = (Graph * _CHUNK)()
    while count := library().take_graphs(place, _CHUNK):
        yield from place[:count]


def _end() -> None:
    counter = _counter()
    publish(EventId.PROCESS_EXIT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counter.check_mode()
    for warning in caught:
        log_event(Warned(message=str(warning.message)))
    if counter.is_lazy:
        # Python is shutting down: the library must not call back any more.
        library().gather_graphs(ReadCallback())
        library().mark()
        counter.take_graphs(Ending.EXIT, "after the last mark_step")
        if not _has_failed():
            report(counter.summary)


def _has_failed() -> bool:
    """Whether an uncaught exception ends the program: its counts would say nothing."""
    return hasattr(sys, "last_value")
