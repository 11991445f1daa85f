"""Which replicas each card runs, and in which steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch

from pilotage.program.program import Action
from pilotage.program.schedule import Schedule, Step


@dataclass(frozen=True, kw_only=True)
class CardShare:
    """What one card runs of a schedule."""

    device: torch.device
    replicas: range
    schedule: Schedule
    """With this card's numbering of micro-batches and results; replicas keep their numbers."""

    micro_batches: tuple[int, ...]
    """Which of the call's micro-batches the card reads."""

    results: tuple[int, ...]
    """Which parts of the call's outputs it computes."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps that a card runs independently of the others."""

    steps: tuple[Step, ...]

    @property
    def updates(self) -> bool:
        """Whether it makes new weights from the gradients of all cards."""
        return self.steps[0].action is Action.UPDATE

    @property
    def micro_batches(self) -> list[int]:
        """What it reads, each once."""
        return list(dict.fromkeys(step.micro_batch for step in self.steps if step.micro_batch is not None))


def cards_for(devices: Sequence[torch.device], replicas: int) -> tuple[torch.device, ...]:
    """The cards for replicas: as many as divide the replicas evenly."""
    count = next(count for count in range(min(len(devices), replicas), 0, -1) if replicas % count == 0)
    return tuple(devices[:count])


def share_out(schedule: Schedule, replicas: int, cards: Sequence[torch.device]) -> list[CardShare]:
    """Divide a schedule among cards, each of which gets the same number of neighbouring replicas."""
    each = replicas // len(cards)
    return [_share(schedule, range(n * each, (n + 1) * each), device) for n, device in enumerate(cards)]


def _share(schedule: Schedule, replicas: range, device: torch.device) -> CardShare:
    steps = [step for step in schedule.steps if step.action is Action.UPDATE or step.replica in replicas]
    micro_batches = sorted({step.micro_batch for step in steps if step.micro_batch is not None})
    results = sorted({step.result for step in steps if step.result is not None})
    here = tuple(
        replace(step, micro_batch=_place(micro_batches, step.micro_batch), result=_place(results, step.result))
        for step in steps
    )
    return CardShare(
        device=device,
        replicas=replicas,
        schedule=replace(schedule, steps=here, micro_batches=len(micro_batches), results=len(results)),
        micro_batches=tuple(micro_batches),
        results=tuple(results),
        segments=tuple(Segment(tuple(group)) for _, group in groupby(here, lambda step: step.action is Action.UPDATE)),
    )


def _place(numbers: list[int], number: int | None) -> int | None:
    return None if number is None else numbers.index(number)
