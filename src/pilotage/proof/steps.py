"""The updates of a whole command: what all of its processes did in each of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.proof.records import ScriptRecord, Update

__all__ = ["Step", "losses_of", "steps_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One update, over all processes.

    Large because it has one field for each quantity that is compared or reported.
    """

    number: int
    mean_loss: float
    """The mean of all backward passes of all processes."""

    total_loss: float
    """The sum over the backward passes of a process, and the mean over processes."""

    parts: int
    """Losses that were seen in each process; 0 where a script computes gradients in an unseen way."""

    samples: int | None
    indices: tuple[int, ...] | None
    """Sorted; None if the samples have no indices."""

    content: tuple[float, ...] | None
    rates: tuple[float, ...]
    optimizer: int | None
    """The number of the optimizer that made it, in the first process."""
    exchanges: int
    device: str
    type: str | None
    """The type in which most products of the first process were computed; None if it is not known."""

    weight_types: tuple[str, ...]
    line: str | None


def steps_of(run: ScriptRecord) -> list[Step]:
    """The updates that every process has made."""
    # Stages of one replica see the same samples; only the first counts.
    processes = [each for each in run.trained if each.header["stage"] in (None, 0)] or list(run.trained)
    return [
        _step(number + 1, [each.updates[number] for each in processes], processes[0].types[number])
        for number in range(min(len(each.updates) for each in processes))
    ]


def _step(number: int, updates: Sequence[Update], kind: str | None) -> Step:
    losses = [each.losses for each in updates]
    flat = [loss for each in losses for loss in each]
    counts = [each.samples for each in updates]
    indices = [each.indices for each in updates]
    contents = [each.content for each in updates]
    return Step(
        number=number,
        mean_loss=_mean(flat),
        total_loss=_mean([sum(each) for each in losses if each]),
        parts=max((len(each) for each in losses), default=0),
        samples=None if None in counts else sum(each or 0 for each in counts),
        indices=None if None in indices else tuple(sorted(index for each in indices for index in each or ())),
        content=None if None in contents or len(contents) > 1 else tuple(contents[0] or ()),
        rates=tuple(updates[0].rates),
        optimizer=updates[0].fields.get("optimizer"),
        exchanges=sum(each.fields["exchanges"] for each in updates),
        device=updates[0].device,
        type=kind,
        weight_types=updates[0].weight_types,
        line=updates[0].line,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def losses_of(before: Sequence[Step], after: Sequence[Step]) -> tuple[list[float], list[float]]:
    """The losses of both, counted alike.

    Where one script accumulates gradients and the other does not, the loss of an update is the mean of its parts or
    their sum, depending on how the script divides; the first update, which starts from equal weights, shows which.
    Where the loss of one of them was not seen, neither counts: both are NaN.
    """
    kinds = ("mean_loss", "total_loss")
    pairs = [(left, right) for left in kinds for right in kinds]
    first_before, first_after = before[0], after[0]
    left, right = min(pairs, key=lambda pair: _gap(getattr(first_before, pair[0]), getattr(first_after, pair[1])))
    seen = [bool(ours.parts and theirs.parts) for ours, theirs in zip(before, after, strict=True)]
    return _where(seen, [getattr(each, left) for each in before]), _where(
        seen, [getattr(each, right) for each in after]
    )


def _where(seen: Sequence[bool], losses: Sequence[float]) -> list[float]:
    return [loss if is_seen else math.nan for loss, is_seen in zip(losses, seen, strict=True)]


def _gap(left: float, right: float) -> float:
    gap = abs(left - right)
    return gap if math.isfinite(gap) else math.inf
