"""The schedule of a pipeline: which stage works on which micro-batch when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.prediction.document import Pipeline, PipelineEntry

__all__ = ["StageSeconds", "pipeline_schedule"]

_MOST_ENTRIES = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSeconds:
    """The time of one micro-batch in one stage."""

    forward: float
    backward: float
    update: float = 0.0
    """The update, once at the end."""

    @property
    def work(self) -> float:
        """Forward and backward."""
        return self.forward + self.backward


def pipeline_schedule(stages: Sequence[StageSeconds], micro_batches: int) -> Pipeline:
    """Forward and backward passes in alternation, each as soon as its input has arrived; then all stages update."""
    count = len(stages)
    ends: dict[tuple[str, int, int], float] = {}
    entries: list[PipelineEntry] = []
    waiting = [_order(stage, count, micro_batches) for stage in range(count)]
    free = [0.0] * count
    moved = True
    while moved:
        moved = False
        for stage, orders in enumerate(waiting):
            while orders and (begin := _ready(ends, orders[0], stage, count)) is not None:
                phase, number = orders.pop(0)
                start = max(begin, free[stage])
                took = stages[stage].forward if phase == "forward" else stages[stage].backward
                free[stage] = ends[phase, stage, number] = start + took
                entries.append(
                    PipelineEntry(stage=stage, phase=phase, micro_batch=number, start=start, end=start + took)  # type: ignore[arg-type]
                )
                moved = True
    last = max(free)
    for stage, seconds in enumerate(stages):
        if seconds.update:
            entries.append(
                PipelineEntry(stage=stage, phase="update", micro_batch=0, start=last, end=last + seconds.update)
            )
    total = last + max(each.update for each in stages)
    busy = sum(each.work * micro_batches + each.update for each in stages)
    bubble = 1 - busy / (count * total) if total else 0.0
    shown = tuple(sorted(entries, key=lambda each: (each.start, each.stage))[:_MOST_ENTRIES])
    return Pipeline(stages=count, seconds=total, bubble=max(0.0, bubble), entries=shown)


def _order(stage: int, count: int, micro_batches: int) -> list[tuple[str, int]]:
    """The order of a stage's work."""
    ahead = min(micro_batches, count - stage)
    orders = [("forward", number) for number in range(ahead)]
    for number in range(micro_batches):
        orders.append(("backward", number))
        if ahead + number < micro_batches:
            orders.append(("forward", ahead + number))
    return orders


def _ready(ends: dict[tuple[str, int, int], float], order: tuple[str, int], stage: int, count: int) -> float | None:
    """When the inputs of an order are ready; None if their computation has not begun."""
    phase, number = order
    if phase == "forward":
        return 0.0 if stage == 0 else ends.get(("forward", stage - 1, number))
    return ends.get(("forward", stage, number)) if stage == count - 1 else ends.get(("backward", stage + 1, number))
