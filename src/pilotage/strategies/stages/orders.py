"""In which order one process tells the cards of a pipeline what to do.

Cards work side by side although they are told one after the other, as each has a queue of its own. In every order a micro-batch
has been told to all stages' forwards before the next one is told to the first: random numbers are drawn as on one card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pilotage.options.choices import PipelineOrder


@dataclass(frozen=True, slots=True)
class Move:
    """One micro-batch goes through one stage, forth or back."""

    stage: int
    number: int
    back: bool = False


def moves(order: PipelineOrder, round_: int, stages: int, *, trains: bool) -> Iterator[Move]:
    """What is told to which stage, for a round of so many micro-batches."""
    if order is PipelineOrder.ONE_FORWARD_ONE_BACKWARD and trains:
        yield from _alternating(round_, stages)
        return
    for number in range(round_):
        yield from _forth(number, stages)
        if trains and order is PipelineOrder.SHARDED:
            yield from _back(number, stages)
    if trains and order is not PipelineOrder.SHARDED:
        for number in range(round_):
            yield from _back(number, stages)


def _forth(number: int, stages: int) -> Iterator[Move]:
    return (Move(stage, number) for stage in range(stages))


def _back(number: int, stages: int) -> Iterator[Move]:
    return (Move(stage, number, back=True) for stage in reversed(range(stages)))


def _alternating(round_: int, stages: int) -> Iterator[Move]:
    """1F1B: a stage begins as many micro-batches as there are stages from it on, then takes turns."""
    for begun in range(round_ + stages):
        for stage in range(stages):
            returning = begun - (stages - stage)
            if 0 <= returning < round_:
                yield Move(stage, returning, back=True)
            if begun < round_:
                yield Move(stage, begun)
