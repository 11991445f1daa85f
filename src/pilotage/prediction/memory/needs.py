"""The memory that one update needs on a kind of device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pilotage.prediction.devices.model import DeviceModel, Tiles
from pilotage.prediction.memory.liveness import Liveness, liveness
from pilotage.prediction.memory.stages import StageMap
from pilotage.prediction.memory.update import UpdateTrace
from pilotage.prediction.memory.workspaces import workspace_of
from pilotage.prediction.trace.operations import Category, Phase, TracedOperation, TracedTensor
from pilotage.prediction.trace.work import MATRIX_PRODUCTS

__all__ = ["Needs", "StageNeeds", "memory_needs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StageNeeds:
    """The memory of the device that runs one stage."""

    stage: int
    live: Liveness
    peak_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """The memory of all stages; the fullest device decides."""

    stages: tuple[StageNeeds, ...]

    @property
    def fullest(self) -> StageNeeds:
        """The stage that needs the most."""
        return max(self.stages, key=lambda each: each.peak_bytes)


def memory_needs(
    update: UpdateTrace,
    model: DeviceModel,
    stages: StageMap,
    accumulation: int,
    *,
    pipelined: bool = True,
    offloads: bool = False,
) -> Needs:
    """What each stage needs; ``offloads`` keeps activations outside of the device until backward needs them."""
    tensors = _offloaded(update) if offloads else update.tensors
    tensors = _held_in_lists(tensors) if model.tiles is None else _one_by_one(update, tensors)
    found = []
    for stage in range(stages.count):
        flight = stages.in_flight(stage, accumulation) if pipelined else 1
        size = _size(model, stages, stage, flight)
        extra = _extra(update, model, stages, stage)
        live = liveness(tensors, extra, len(update.operations), size)
        found.append(StageNeeds(stage=stage, live=live, peak_bytes=live.peak_bytes))
    return Needs(stages=tuple(found))


def _size(model: DeviceModel, stages: StageMap, stage: int, flight: int) -> Callable[[TracedTensor], int]:
    rounding = max(1, model.memory.rounding_bytes)

    def size(tensor: TracedTensor) -> int:
        if tensor.on_host:
            return 0
        share = stages.share(tensor, stage)
        if share == 0:
            return 0
        bytes_ = tensor.bytes * share
        if tensor.category is Category.ACTIVATIONS:
            bytes_ *= flight
        if tensor.is_stored and tensor.category is Category.GRADIENTS:
            # All pools are views of one buffer.
            return round(bytes_)
        return math.ceil(bytes_ / rounding) * rounding

    return size


def _offloaded(update: UpdateTrace) -> tuple[TracedTensor, ...]:
    """The tensors, with activations only where forward makes them and where backward uses them."""
    last_of_forward = max((i for i, each in enumerate(update.operations) if each.phase is Phase.FORWARD), default=0)
    found = []
    for tensor in update.tensors:
        crosses = tensor.first <= last_of_forward < tensor.last < len(update.operations)
        if tensor.category is Category.ACTIVATIONS and crosses:
            found += [replace(tensor, last=tensor.first + 1), replace(tensor, first=max(tensor.last - 1, 0))]
        else:
            found.append(tensor)
    return tuple(found)


def _held_in_lists(tensors: Sequence[TracedTensor]) -> tuple[TracedTensor, ...]:
    """The tensors of a device that runs operations one by one: results live as long as the list that they came in."""
    return tuple(replace(each, last=each.held) if each.held > each.last else each for each in tensors)


def _one_by_one(update: UpdateTrace, tensors: Sequence[TracedTensor]) -> tuple[TracedTensor, ...]:
    """The tensors of a device that updates one parameter after the other: of each list only the largest."""
    largest: dict[int, TracedTensor] = {}
    found = []
    for tensor in tensors:
        inside = not tensor.is_stored and 0 <= tensor.first < len(update.operations)
        if not inside or update.operations[tensor.first].phase is not Phase.UPDATE:
            found.append(tensor)
        elif tensor.first not in largest or tensor.bytes > largest[tensor.first].bytes:
            largest[tensor.first] = tensor
    return (*found, *largest.values())


def _extra(update: UpdateTrace, model: DeviceModel, stages: StageMap, stage: int) -> dict[str, Sequence[int]]:
    operations = update.operations
    here = [stages.count == 1 or each.stage in (stage, None) for each in operations]
    if model.tiles is not None:
        return _tile_extra(operations, here, model.tiles)
    workspaces = [workspace_of(each.work, model) if mine else 0 for each, mine in zip(operations, here, strict=True)]
    kept = model.memory.workspace_bytes if any(each.work.kind in MATRIX_PRODUCTS for each in operations) else 0
    return {Category.TEMPORARIES.value: workspaces, "workspace": [kept] * len(operations)}


def _tile_extra(operations: Sequence[TracedOperation], here: Sequence[bool], tiles: Tiles) -> dict[str, Sequence[int]]:
    """Partial sums and rearranged operands of products, and the code of different operations."""
    partials, exchange, kinds = [], [], set()
    for operation, mine in zip(operations, here, strict=True):
        work = operation.work
        is_product = mine and work.kind in MATRIX_PRODUCTS
        width = 4 / (2 if work.type in ("float16", "bfloat16") else 4)
        partials.append(round(work.written * width * tiles.partials) if is_product else 0)
        exchange.append(work.read // 2 if is_product else work.read // 16 if mine else 0)
        if mine:
            # The compiler writes the code of equal operations once.
            kinds.add((operation.name, operation.output, work.read))
    code = tiles.code_bytes + len(kinds) * tiles.operation_code_bytes
    return {Category.TEMPORARIES.value: partials, "exchange": exchange, "code": [code] * len(operations)}
