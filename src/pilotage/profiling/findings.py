"""Remarks about what stands out in a profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pilotage.prediction.document import Expensive, Operation, Source
from pilotage.profiling.clocks import has_queue
from pilotage.profiling.subject import Subject
from pilotage.profiling.watch import ScriptWatch

__all__ = ["expensive_of", "insights_of"]

_MOST = 3
_WORTH_SAYING = 0.1
"""The share of time from which waiting for data is mentioned."""

_BUSY = 0.8
"""The share of an update in which a card should be at work."""


def expensive_of(operations: Sequence[Operation]) -> tuple[Expensive, ...]:
    """The kinds of operations that take most time, each in its module."""
    seconds: dict[tuple[str, str, str], float] = defaultdict(float)
    runs: dict[tuple[str, str, str], int] = defaultdict(int)
    sources: dict[tuple[str, str, str], Source | None] = {}
    for each in operations:
        key = (each.name, each.module, each.phase)
        seconds[key] += (each.measured_seconds or 0.0) * each.times
        runs[key] += each.times
        sources.setdefault(key, each.source)
    total = sum(seconds.values())
    if not total:
        return ()
    found = sorted(seconds, key=lambda key: -seconds[key])[:_MOST]
    return tuple(
        Expensive(
            what=f"{name} in {module}" if module else name,
            seconds=seconds[name, module, phase],
            why=f"{_percent(seconds[name, module, phase] / total)} of the time of all operations, in "
            f"{runs[name, module, phase]} {'runs' if runs[name, module, phase] > 1 else 'run'} ({phase}).",
            source=sources[name, module, phase],
        )
        for name, module, phase in found
    )


def insights_of(subject: Subject, watch: ScriptWatch, operations: Sequence[Operation]) -> tuple[str, ...]:
    """Sentences about where the time goes."""
    return (*_loading(subject, watch), *_busy(subject, operations), *_phases(operations), *_kinds(operations))


def _loading(subject: Subject, watch: ScriptWatch) -> list[str]:
    share = watch.timeline.seconds_of("next batch", subject.wall) / max(subject.wall, 1e-9)
    if share < _WORTH_SAYING:
        return []
    return [
        f"The script waits for its loader for {_percent(min(share, 1))} of the time. More worker processes, "
        "asynchronous loading or smaller input types would shorten that."
    ]


def _busy(subject: Subject, operations: Sequence[Operation]) -> list[str]:
    working = sum((each.measured_seconds or 0.0) * each.times for each in operations)
    update = sorted(subject.seconds)[len(subject.seconds) // 2]
    if not working or not has_queue(subject.facts.device):
        return []
    share = working / update
    if share >= _BUSY:
        return [f"The card is busy for {_percent(min(share, 1))} of an update."]
    return [
        f"The card is busy for only {_percent(share)} of an update: the host cannot send operations fast enough. "
        "Capture the whole step with pilotage.training, or make the batch larger."
    ]


def _phases(operations: Sequence[Operation]) -> list[str]:
    sums: dict[str, float] = defaultdict(float)
    for each in operations:
        sums[each.phase] += (each.measured_seconds or 0.0) * each.times
    total = sum(sums.values())
    if not total or len(sums) < 2:
        return []
    parts = [f"{phase} {_percent(sums[phase] / total)}" for phase in ("forward", "backward", "update") if phase in sums]
    return [f"Time of the operations: {', '.join(parts)}."]


def _kinds(operations: Sequence[Operation]) -> list[str]:
    sums: dict[str, float] = defaultdict(float)
    for each in operations:
        sums[each.name] += (each.measured_seconds or 0.0) * each.times
    total = sum(sums.values())
    if not total:
        return []
    name = max(sums, key=sums.__getitem__)
    return [f"{name} takes {_percent(sums[name] / total)} of the time of all operations."]


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
