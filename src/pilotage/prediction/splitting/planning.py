"""Finds block boundaries whose slowest stage is as fast as possible, among those that fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pilotage.prediction.memory.tiles import fullest_tile
from pilotage.prediction.prediction import Prediction, predicted
from pilotage.prediction.splitting.units import Unit, assigned_stages, units_of

__all__ = ["Split", "best_boundaries", "plan_split"]


@dataclass(frozen=True, kw_only=True)
class Split:
    """A model divided over devices."""

    units: tuple[Unit, ...]
    chosen: tuple[int, ...]
    """The units that begin the second and later stages."""

    prediction: Prediction
    """The program in these stages."""

    by_hand: Prediction
    """The program as the script divides it, or with equally many parts in each stage."""

    has_stages: bool
    """Whether the script divides it."""

    @property
    def modules(self) -> list[str]:
        """The modules that begin the second and later stages."""
        return [self.units[place].module for place in self.chosen]

    @property
    def first_module(self) -> str:
        """The first module of the first stage; empty if that stage has none."""
        return next((unit.module for unit in self.units[: self.chosen[0]] if unit.module), "")

    @cached_property
    def slowest(self) -> float:
        """The time of the slowest stage for one micro-batch."""
        return max(each.work for each in self.prediction.stage_seconds)

    @cached_property
    def slowest_by_hand(self) -> float:
        """The same for the other division."""
        return max(each.work for each in self.by_hand.stage_seconds)


def plan_split(prediction: Prediction, devices: int) -> Split | None:
    """Divide a program over devices; None if it has fewer parts than that."""
    units = units_of(prediction, devices)
    if len(units) < devices:
        return None
    chosen = _improved(prediction, units, best_boundaries(prediction, units, devices))
    has_stages = prediction.stages.count == devices
    equal = [len(units) * stage // devices for stage in range(1, devices)]
    return Split(
        units=tuple(units),
        chosen=tuple(chosen),
        prediction=_in(prediction, units, chosen),
        by_hand=prediction if has_stages else _in(prediction, units, equal),
        has_stages=has_stages,
    )


def _in(prediction: Prediction, units: Sequence[Unit], chosen: Sequence[int]) -> Prediction:
    stages = assigned_stages(prediction, [units[place].first for place in chosen])
    return predicted(
        prediction.traced, prediction.model, prediction.arithmetic, assigned=stages, costs=prediction.costs
    )


def best_boundaries(prediction: Prediction, units: Sequence[Unit], devices: int) -> list[int]:
    """Dynamic programming over the parts: minimises memory above the limit first, then the time of the slowest stage.

    Where nothing fits, the fullest stage is made as small as possible.
    """
    count, accumulation = len(units), prediction.traced.batching.gradient_accumulation
    capacity = prediction.model.memory.capacity_bytes
    sums = [_prefix(units, name) for name in ("seconds", "state", "activations")]

    def cost(begin: int, end: int, stage: int) -> tuple[float, float]:
        seconds, state, activations = (each[end] - each[begin] for each in sums)
        flight = max(1, min(accumulation, 2 * (devices - 1 - stage) + 1))
        bytes_ = state + activations * flight + max(each.temporaries for each in units[begin:end])
        return max(0.0, _needed(prediction, bytes_) - capacity), seconds

    # best[stage][end]: the worst excess and the slowest stage, if the first stages end there.
    best = [[(math.inf, math.inf)] * (count + 1) for _ in range(devices)]
    cut = [[0] * (count + 1) for _ in range(devices)]
    for end in range(1, count + 1):
        best[0][end] = cost(0, end, 0)
    for stage in range(1, devices):
        for end in range(stage + 1, count + 1):
            for begin in range(stage, end):
                here, before = cost(begin, end, stage), best[stage - 1][begin]
                found = (max(here[0], before[0]), max(here[1], before[1]))
                if found < best[stage][end]:
                    best[stage][end], cut[stage][end] = found, begin
    chosen, end = [], count
    for stage in range(devices - 1, 0, -1):
        end = cut[stage][end]
        chosen.append(end)
    return chosen[::-1]


def _improved(prediction: Prediction, units: Sequence[Unit], chosen: list[int]) -> list[int]:
    """Move boundaries by one part while the full prediction improves: it is more exact than the sums."""
    best, score = chosen, _score(_in(prediction, units, chosen))
    for _ in range(len(units)):
        better = None
        for place in range(len(best)):
            for step in (-1, 1):
                tried = [*best]
                tried[place] += step
                if tried != sorted(set(tried)) or not tried[0] > 0 or tried[-1] >= len(units):
                    continue
                found = _score(_in(prediction, units, tried))
                if found < score:
                    better, score = tried, found
        if better is None:
            return best
        best = better
    return best


def _score(prediction: Prediction) -> tuple[float, float]:
    excess = max(0, prediction.peak_bytes - prediction.model.memory.capacity_bytes)
    return excess, max(each.work for each in prediction.stage_seconds)


def _needed(prediction: Prediction, bytes_: float) -> float:
    """The bytes that a stage needs for its tensors and its code."""
    tiles = prediction.model.tiles
    if tiles is None:
        return bytes_ + prediction.model.memory.workspace_bytes
    return fullest_tile(round(bytes_) + tiles.code_bytes, tiles) * tiles.count


def _prefix(units: Sequence[Unit], name: str) -> list[float]:
    found = [0.0]
    for unit in units:
        found.append(found[-1] + getattr(unit, name))
    return found
