"""The ordered steps of one host call.

The schedule is data: executables walk it, and reports draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode
from pilotage.program.program import Action


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One entry of a schedule."""

    action: Action
    iteration: int
    """The device iteration of the step."""

    replica: int = 0
    micro_batch: int | None = None
    """The part of the inputs that it reads; None for an update."""

    result: int | None = None
    """The place of its outputs in the result; None drops them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """The steps of one host call."""

    steps: tuple[Step, ...]
    micro_batches: int
    """The number of parts that the inputs are split into."""

    results: int
    """The number of parts that the outputs are joined from."""

    sums: bool = False
    """Outputs with the same place are added."""

    updates: int = 0
    """The number of weight updates."""

    @property
    def iterations(self) -> int:
        """The number of device iterations."""
        return self.steps[-1].iteration + 1

    def in_parts(self, parts: int) -> list[tuple[Step, ...]]:
        """The steps split into parts with equally many device iterations."""
        length = self.iterations // parts
        return [tuple(step for step in self.steps if step.iteration // length == part) for part in range(parts)]


def make_schedule(
    batching: Batching, *, trains: bool, mode: OutputMode, period: int = 1, pools: bool = False
) -> Schedule:
    """Nest device iterations, accumulation and replicas, in this order; ``pools`` also pools single gradients."""
    pools = pools or batching.micro_batches_per_update > 1
    run = (Action.ACCUMULATE if pools else Action.TRAIN) if trains else Action.INFER
    steps: list[Step] = []
    for iteration in range(batching.device_iterations):
        for accumulation in range(batching.gradient_accumulation):
            for replica in range(batching.replicas):
                steps.append(_step(batching, mode, period, run, iteration, accumulation, replica))
        if run is Action.ACCUMULATE:
            steps.append(Step(action=Action.UPDATE, iteration=iteration))
    return Schedule(
        steps=tuple(steps),
        micro_batches=batching.micro_batches_per_call,
        results=_results(batching, mode, period),
        sums=mode is OutputMode.SUM,
        updates=batching.device_iterations if trains else 0,
    )


def _step(
    batching: Batching, mode: OutputMode, period: int, action: Action, iteration: int, accumulation: int, replica: int
) -> Step:
    round_ = iteration * batching.gradient_accumulation + accumulation
    inputs_per_round = batching.replicas // batching.replicas_per_input
    return Step(
        action=action,
        iteration=iteration,
        replica=replica,
        micro_batch=round_ * inputs_per_round + batching.input_of(replica),
        result=_result(batching, mode, period, iteration, accumulation, replica),
    )


def _result(
    batching: Batching, mode: OutputMode, period: int, iteration: int, accumulation: int, replica: int
) -> int | None:
    rounds, replicas = batching.gradient_accumulation, batching.replicas
    match mode:
        case OutputMode.ALL:
            return (iteration * rounds + accumulation) * replicas + replica
        case OutputMode.EVERY_N:
            kept = (iteration + 1) % period == 0
            return ((iteration // period) * rounds + accumulation) * replicas + replica if kept else None
        case OutputMode.FINAL:
            last = iteration == batching.device_iterations - 1 and accumulation == rounds - 1
            return replica if last else None
        case OutputMode.SUM:
            return replica


def _results(batching: Batching, mode: OutputMode, period: int) -> int:
    per_iteration = batching.gradient_accumulation * batching.replicas
    match mode:
        case OutputMode.ALL:
            return batching.device_iterations * per_iteration
        case OutputMode.EVERY_N:
            return (batching.device_iterations // period) * per_iteration
        case _:
            return batching.replicas
