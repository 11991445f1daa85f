"""Which stage of a pipeline each tensor belongs to, and how many micro-batches are in flight there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.prediction.memory.update import UpdateTrace
from pilotage.prediction.trace.operations import Category, Phase, TracedOperation, TracedTensor

__all__ = ["StageMap", "stages_of"]


@dataclass(frozen=True, kw_only=True)
class StageMap:
    """The stages of a program; a program without any has one."""

    count: int
    of_parameter: dict[str, int]
    """The stage that has each weight."""

    weight_share: tuple[float, ...]
    """The part of all weights that each stage has."""

    def share(self, tensor: TracedTensor, stage: int) -> float:
        """The fraction of a tensor that a stage has."""
        if self.count == 1:
            return 1.0
        if tensor.is_stored and tensor.owner:
            return float(self.of_parameter.get(tensor.owner, 0) == stage)
        if tensor.category is Category.INPUTS:
            return float(stage == 0)
        return self.weight_share[stage] if tensor.stage is None else float(tensor.stage == stage)

    def in_flight(self, stage: int, accumulation: int) -> int:
        """The number of micro-batches whose activations a stage keeps in the schedule 1F1B."""
        return max(1, min(accumulation, 2 * (self.count - 1 - stage) + 1))


def stages_of(update: UpdateTrace, assigned: Sequence[int | None] | None = None) -> StageMap:
    """The stages of all operations: their own, or the given ones."""
    stages = [each.stage for each in update.operations] if assigned is None else list(assigned)
    count = max((stage for stage in stages if stage is not None), default=0) + 1
    of_parameter: dict[str, int] = {}
    for operation, stage in zip(update.operations, stages, strict=True):
        if stage is not None and _places_weights(operation):
            for name in operation.parameters:
                of_parameter.setdefault(name, stage)
    weights: dict[int, int] = defaultdict(int)
    for tensor in update.tensors:
        if tensor.is_stored and tensor.category is Category.WEIGHTS:
            weights[of_parameter.get(tensor.owner, 0)] += tensor.bytes
    total = max(1, sum(weights.values()))
    shares = tuple(weights[stage] / total for stage in range(count))
    return StageMap(count=count, of_parameter=of_parameter, weight_share=shares)


def _places_weights(operation: TracedOperation) -> bool:
    return operation.phase is Phase.FORWARD
