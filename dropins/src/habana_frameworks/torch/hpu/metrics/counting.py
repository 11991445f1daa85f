"""Metrics that count the events of the bridge."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from habana_frameworks._emulation.events import EventDispatcher, EventId, Parameters

_NO_DETAILS = ("", "0", "false")


class MetricNotFound(Exception):
    """No metric has that name."""


class Metric:
    """Counts events of some kinds while it runs."""

    events: tuple[EventId, ...] = ()

    def __init__(self, name: str) -> None:
        self._name = name
        self._handles: list[int] = []
        self._listeners: list[Callable[[Metric], object]] = []
        self.reset()

    def name(self) -> str:
        """Return the name."""
        return self._name

    def reset(self) -> None:
        """Set all figures to zero."""
        self._counts: Counter[str] = Counter()
        self._recipes: dict[EventId, Counter[str]] = {event: Counter() for event in self.events}

    def start(self) -> None:
        """Start counting."""
        if self._handles:
            return
        dispatcher = EventDispatcher.instance()
        for event in self.events:
            self._handles.append(dispatcher.subscribe(event, self._counting(event)))

    def stop(self) -> None:
        """Stop counting; the figures stay."""
        for handle in self._handles:
            EventDispatcher.instance().unsubscribe(handle)
        self._handles.clear()

    def on_metric_change(self, fn: Callable[[Metric], object]) -> None:
        """Call a function after each change."""
        self._listeners.append(fn)

    def stats(self) -> list[tuple[str, Any]]:
        """Return the figures, as pairs of name and value."""
        raise NotImplementedError

    def _counting(self, event: EventId) -> Callable[[int, Parameters], None]:
        def count(moment: int, params: Parameters) -> None:
            self._counts[event.name] += 1
            self._recipes[event][dict(params).get("recipe", "")] += 1
            for listener in self._listeners:
                listener(self)

        return count


class _GraphCompilation(Metric):
    """Graphs that the card would have compiled."""

    events = (EventId.GRAPH_COMPILATION,)

    def stats(self) -> list[tuple[str, Any]]:
        figures: list[tuple[str, Any]] = [
            ("TotalNumber", self._counts[EventId.GRAPH_COMPILATION.name]),
            ("TotalTime", 0),
            ("AvgTime", 0),
        ]
        if os.environ.get("PT_HPU_METRICS_GC_DETAILS", "").lower() not in _NO_DETAILS:
            figures.append(("recipe", list(self._recipes[EventId.GRAPH_COMPILATION])))
        return figures


class _CpuFallback(Metric):
    """Operations that the card leaves to the CPU; in the emulation always none."""

    events = (EventId.CPU_FALLBACK,)

    def stats(self) -> list[tuple[str, Any]]:
        return [("TotalNumber", self._counts[EventId.CPU_FALLBACK.name]), ("FallbackOps", {})]


class _Defragmentation(Metric):
    """Defragmentations of the card's memory, which the emulation never makes."""

    events = (EventId.MEMORY_DEFRAGMENTATION,)

    def stats(self) -> list[tuple[str, Any]]:
        number = self._counts[EventId.MEMORY_DEFRAGMENTATION.name]
        return [("TotalNumber", number), ("TotalSuccessful", number), ("AvgTime", 0), ("MaxTime", 0)]


class _RecipeCache(Metric):
    """Graphs that were known, and graphs that were new."""

    events = (EventId.CACHE_HIT, EventId.CACHE_MISS)

    def stats(self) -> list[tuple[str, Any]]:
        return [
            ("TotalHit", self._counts[EventId.CACHE_HIT.name]),
            ("RecipeHit", dict(self._recipes[EventId.CACHE_HIT])),
            ("TotalMiss", self._counts[EventId.CACHE_MISS.name]),
            ("RecipeMiss", dict(self._recipes[EventId.CACHE_MISS])),
        ]


def _kinds() -> dict[str, type[Metric]]:
    kinds: dict[str, type[Metric]] = {
        "graph_compilation": _GraphCompilation,
        "cpu_fallback": _CpuFallback,
        "memory_defragmentation": _Defragmentation,
    }
    if os.environ.get("PT_HPU_ENABLE_CACHE_METRICS", "").lower() not in _NO_DETAILS:
        kinds["recipe_cache"] = _RecipeCache
    return kinds


@cache
def global_metrics() -> dict[str, Metric]:
    """The metrics that count from the import on."""
    metrics = {name: kind(name) for name, kind in _kinds().items()}
    for each in metrics.values():
        each.start()
    return metrics


def metric_global(name: str) -> Metric | None:
    """Return a metric that counts from the import on; None for an unknown name."""
    return global_metrics().get(name)


@contextlib.contextmanager
def metric_localcontext(name: str) -> Iterator[Metric]:
    """Count within a block, from zero."""
    kind = _kinds().get(name)
    if kind is None:
        raise MetricNotFound(f"No metric named {name!r}. Choose one of: {', '.join(_kinds())}.")
    metric = kind(name)
    metric.start()
    try:
        yield metric
    finally:
        metric.stop()


global_metrics()
