"""Lazy mode without the card: everything runs at once, and what the card would have gathered into graphs is counted."""

from __future__ import annotations

import atexit
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from habana_frameworks._emulation.library import Graph, library
from pilotage.logs import logger

_MODE = "PT_HPU_LAZY_MODE"
_SUMMARY = "PILOTAGE_HPU_SUMMARY"
_MODES = {"0": "eager", "1": "lazy", "2": "eager"}
_ROOM = 256


@dataclass(kw_only=True)
class Summary:
    """What lazy mode would have done on the card."""

    graphs: int = 0
    """Graphs with at least one operation."""
    operations: int = 0
    cache_hits: int = 0
    """Graphs whose operations and shapes were all seen before."""
    compilations: int = 0
    recompilations_by_shape: int = 0
    """Compilations of known operations on shapes that were not seen before."""
    cut_by_reading: int = 0
    """Graphs that ended because a value was read, not by mark_step."""
    idle_marks: int = 0
    """Calls of mark_step with nothing to run."""
    marks_by_line: dict[str, int] = field(default_factory=dict)
    operations_by_line: dict[str, int] = field(default_factory=dict)


class _Watch:
    """Follows the graphs of one process."""

    def __init__(self) -> None:
        self.given = os.environ.get(_MODE, "0")
        if self.given not in _MODES:
            raise ValueError(
                f"{_MODE} is {self.given!r}. Choose one of: 0 (eager), 1 (lazy), 2 (eager, older releases)."
            )
        self.is_lazy = _MODES[self.given] == "lazy"
        self._seen: set[tuple[int, int]] = set()
        self._structures: set[int] = set()
        self._summary = Summary()
        self._marks: Counter[str] = Counter()
        self._operations: Counter[str] = Counter()
        self._updated: set[int] = set()
        self._has_warned = False

    def mark(self, line: str) -> None:
        if os.environ.get(_MODE, self.given) != self.given:
            warnings.warn(
                f"{_MODE} was changed to {os.environ[_MODE]!r} after habana_frameworks was imported with {self.given!r}; "
                "the card may ignore that. Set it before the import.",
                stacklevel=4,
            )
            self.given = os.environ[_MODE]
        if self.is_lazy:
            self._updated.clear()
            library().mark()
            self._marks[line] += 1
            for graph in _cut_graphs():
                self._count(graph, line)

    def after_update(self, optimizer: Optimizer, *_: Any) -> None:
        if not any(each.device.type == "hpu" for group in optimizer.param_groups for each in group["params"]):
            return
        for graph in _cut_graphs():
            self._count(graph, "where a value was read")
            self._updated.clear()
        if id(optimizer) in self._updated and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "Two optimizer steps without mark_step between them: in lazy mode the card would gather both into one "
                "graph. Call htcore.mark_step() after loss.backward() and after optimizer.step().",
                stacklevel=3,
            )
        self._updated.add(id(optimizer))

    def summary(self) -> Summary:
        for graph in _cut_graphs():
            self._count(graph, "after the last mark_step")
        self._summary.marks_by_line = dict(self._marks)
        self._summary.operations_by_line = dict(self._operations)
        return self._summary

    def _count(self, graph: Graph, line: str) -> None:
        kept = self._summary
        if graph.operations == 0:
            kept.idle_marks += 1
            return
        kept.graphs += 1
        kept.operations += graph.operations
        kept.cut_by_reading += graph.cut_by_reading
        self._operations[line] += graph.operations
        if (graph.structure, graph.shapes) in self._seen:
            kept.cache_hits += 1
            return
        kept.compilations += 1
        kept.recompilations_by_shape += graph.structure in self._structures
        self._seen.add((graph.structure, graph.shapes))
        self._structures.add(graph.structure)


@cache
def _watch() -> _Watch:
    return _Watch()


def start() -> None:
    """Begin to watch, by the mode that the environment asks for."""
    watch = _watch()
    if watch.is_lazy:
        register_optimizer_step_post_hook(watch.after_update)
        atexit.register(_tell)


def mode() -> str:
    """``lazy`` or ``eager``."""
    return "lazy" if _watch().is_lazy else "eager"


def mark() -> None:
    """End the graph gathered so far, for the line that calls the caller."""
    frame = sys._getframe(2)
    _watch().mark(f"{frame.f_code.co_filename}:{frame.f_lineno}")


def summary() -> Summary:
    """What lazy mode would have done so far."""
    return _watch().summary()


def _cut_graphs() -> Iterator[Graph]:
    take: Callable[..., int] = library().take_graphs
    place = (Graph * _ROOM)()
    while count := take(place, _ROOM):
        yield from place[:count]


def _tell() -> None:
    found = summary()
    logger.info(
        "Lazy mode would have run %d graphs of %.0f operations on average: %d compiled (%d of them for new shapes), %d from "
        "the cache, %d cut by reading a value, %d idle marks.",
        found.graphs,
        found.operations / max(found.graphs, 1),
        found.compilations,
        found.recompilations_by_shape,
        found.cache_hits,
        found.cut_by_reading,
        found.idle_marks,
    )
    if path := os.environ.get(_SUMMARY):
        Path(path).write_text(json.dumps(asdict(found), indent=2) + "\n")
