"""The order in which the stages of a pipeline work on micro-batches.

Cards work in parallel although one process starts their work sequentially, because each has its own queue. In every
order all forward passes of a micro-batch are started before those of the next, so that random numbers are drawn as on
one card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pilotage.errors import OptionError
from pilotage.options.choices import PipelineOrder


def order_for(asked: PipelineOrder | None, round_: int, stages: int, *, trains: bool) -> PipelineOrder:
    """The requested order, or the one that needs the least memory."""
    if asked is PipelineOrder.SHARDED:
        return asked
    if not trains:
        return PipelineOrder.GPIPE
    if asked is PipelineOrder.ONE_FORWARD_ONE_BACKWARD and round_ < stages:
        raise OptionError(
            "The order of the pipeline is '1f1b', which needs at least one micro-batch per update for each of the "
            f"{stages} stages, but there are {round_}. Raise gradient accumulation, or use 'gpipe'."
        )
    if asked is not None:
        return asked
    return PipelineOrder.ONE_FORWARD_ONE_BACKWARD if round_ >= stages else PipelineOrder.GPIPE


@dataclass(frozen=True, slots=True)
class Move:
    """Forward or backward of one micro-batch in one stage."""

    stage: int
    number: int
    back: bool = False


def moves(order: PipelineOrder, round_: int, stages: int, *, trains: bool) -> Iterator[Move]:
    """The work of all stages, in the order in which it is started, for a round of micro-batches."""
    if order is PipelineOrder.ONE_FORWARD_ONE_BACKWARD and trains:
        yield from _alternating(round_, stages)
        return
    for number in range(round_):
        yield from _forward_moves(number, stages)
        if trains and order is PipelineOrder.SHARDED:
            yield from _backward_moves(number, stages)
    if trains and order is not PipelineOrder.SHARDED:
        for number in range(round_):
            yield from _backward_moves(number, stages)


def _forward_moves(number: int, stages: int) -> Iterator[Move]:
    return (Move(stage, number) for stage in range(stages))


def _backward_moves(number: int, stages: int) -> Iterator[Move]:
    return (Move(stage, number, back=True) for stage in reversed(range(stages)))


def _alternating(round_: int, stages: int) -> Iterator[Move]:
    """1F1B: a stage starts one micro-batch for itself and each later stage, then alternates."""
    for begun in range(round_ + stages):
        for stage in range(stages):
            returning = begun - (stages - stage)
            if 0 <= returning < round_:
                yield Move(stage, returning, back=True)
            if begun < round_:
                yield Move(stage, begun)
