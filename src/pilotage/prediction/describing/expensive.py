"""The most expensive operations and tensors of a program, and remarks about its figures."""

from __future__ import annotations

import os
from collections import defaultdict

from pilotage.prediction.describing.sources import source_of
from pilotage.prediction.document import Expensive
from pilotage.prediction.prediction import Prediction

__all__ = ["expensive_of", "insights_of"]

_MOST = 3


def expensive_of(prediction: Prediction) -> tuple[Expensive, ...]:
    """The lines that take the largest share of the time or of the memory."""
    found = [*_by_time(prediction), *_by_memory(prediction), *_besides(prediction)]
    found.sort(key=lambda pair: -pair[0])
    return tuple(each for _, each in found[:_MOST])


def _by_time(prediction: Prediction) -> list[tuple[float, Expensive]]:
    update, whole = prediction.traced.update, prediction.update_seconds or 1.0
    seconds: dict[tuple[str | None, str], float] = defaultdict(float)
    names: dict[tuple[str | None, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for operation, cost, times in zip(update.operations, prediction.costs, update.times, strict=True):
        key = (operation.line, operation.phase.value if operation.line is None else "")
        seconds[key] += cost.seconds * times
        names[key][operation.name] += cost.seconds * times
    found = []
    for key, taken in seconds.items():
        line, phase = key
        main = max(names[key], key=names[key].__getitem__)
        what = _short(line) if line is not None else f"the {phase}"
        why = f"{taken / whole:.0%} of the time of an update, most of it in {main}"
        found.append((taken / whole, Expensive(what=what, seconds=taken, why=why, source=source_of(line))))
    return found


def _by_memory(prediction: Prediction) -> list[tuple[float, Expensive]]:
    live = prediction.needs.fullest.live
    whole = prediction.peak_bytes or 1
    sizes: dict[tuple[str, str | None], int] = defaultdict(int)
    for tensor, size in live.live:
        sizes[tensor.category.value, None if tensor.is_stored else tensor.line] += size
    found = []
    for (category, line), size in sizes.items():
        what = f"{category} of {_short(line)}" if line else f"all {category}"
        why = f"{size / whole:.0%} of the memory at the peak"
        found.append((size / whole, Expensive(what=what, bytes=size, why=why, source=source_of(line))))
    return found


def _besides(prediction: Prediction) -> list[tuple[float, Expensive]]:
    """Time that is not spent in operations."""
    whole = prediction.update_seconds or 1.0
    reasons = {
        "host": "calls and copies between host and device",
        "loading": "the device waits while the host prepares batches",
        "bubble": "stages wait for each other",
        "collectives": "replicas sum their gradients",
    }
    parts = prediction.by_part
    return [
        (
            parts[name] / whole,
            Expensive(what=name, seconds=parts[name], why=f"{parts[name] / whole:.0%} of the time: {reason}"),
        )
        for name, reason in reasons.items()
        if name in parts
    ]


def insights_of(prediction: Prediction) -> tuple[str, ...]:
    """Sentences about what stands out."""
    parts, whole = prediction.by_part, prediction.update_seconds or 1.0
    found = []
    for name, sentence in (
        ("launch", "of the time goes into starting operations: larger micro-batches or compiled code would help"),
        ("synchronisation", "of the time the tiles wait for each other: larger micro-batches would help"),
        ("bubble", "of the time stages wait for each other: more gradient accumulation would help"),
        ("loading", "of the time the device waits for batches: load them asynchronously"),
        ("host", "of the time goes into calls and copies: use more device iterations or smaller inputs"),
        ("collectives", "of the time replicas sum gradients: more gradient accumulation would help"),
    ):
        share = parts.get(name, 0.0) / whole
        if share > 0.2:
            found.append(f"{share:.0%} {sentence}.")
    at_peak = prediction.needs.fullest.live.at_peak()
    total = prediction.peak_bytes or 1
    category = max(at_peak, key=at_peak.__getitem__, default="")
    if category:
        found.append(f"At the peak, {at_peak[category] / total:.0%} of the memory is for {category}.")
    return tuple(found)


def _short(line: str | None) -> str:
    return "" if line is None else os.path.basename(line)
