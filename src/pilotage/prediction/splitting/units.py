"""The parts of a model between which it can be cut: modules, in the order in which forward runs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.prediction.prediction import Prediction
from pilotage.prediction.trace.operations import Category, Phase, TracedOperation

__all__ = ["Unit", "assigned_stages", "units_of"]

_PARTS = 6
"""The least number of parts per stage, so that stages can be balanced."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """Consecutive operations of forward, starting at a module, with their time and memory."""

    module: str
    """The module that begins it; empty for what runs before the first one."""

    first: int
    """The first operation of forward."""

    seconds: float
    """Forward and backward of one micro-batch."""

    state: int
    """Bytes of weights, gradients and optimizer state."""

    activations: int
    """Bytes that forward keeps for backward, of one micro-batch."""

    temporaries: int
    """The most bytes that other values need at once."""


def units_of(prediction: Prediction, devices: int) -> list[Unit]:
    """The parts of a model, small enough to balance this number of devices."""
    operations = prediction.traced.update.operations
    costs = [cost.seconds for cost in prediction.costs]
    cuts = _cuts(operations, costs, devices)
    starts = _starts(operations, cuts)
    place = _places(operations, [first for first, _ in starts])
    seconds: dict[int, float] = defaultdict(float)
    for operation, cost, unit in zip(operations, costs, place, strict=True):
        if operation.phase is not Phase.UPDATE:
            seconds[unit] += cost
    state, activations, temporaries = _memory(prediction, place)
    return [
        Unit(
            module=module,
            first=first,
            seconds=seconds[unit],
            state=state[unit],
            activations=activations[unit],
            temporaries=temporaries[unit],
        )
        for unit, (first, module) in enumerate(starts)
    ]


def assigned_stages(prediction: Prediction, boundaries: Sequence[int]) -> list[int | None]:
    """The stage of each operation, if stages begin at these operations of forward; updates belong to all."""
    operations = prediction.traced.update.operations
    place = _places(operations, [0, *boundaries])
    return [None if each.phase is Phase.UPDATE else stage for each, stage in zip(operations, place, strict=True)]


def _cuts(operations: Sequence[TracedOperation], costs: Sequence[float], devices: int) -> set[str]:
    """The modules to cut at: large ones are replaced by their parts."""
    times: dict[str, float] = defaultdict(float)
    children: dict[str, set[str]] = defaultdict(set)
    for operation, cost in zip(operations, costs, strict=True):
        path = operation.module.split(".") if operation.module else []
        for depth in range(len(path) + 1):
            name = ".".join(path[:depth])
            times[name] += cost
            if depth < len(path):
                children[name].add(".".join(path[: depth + 1]))
    limit = times[""] / (devices * _PARTS)
    found, waiting = set(), [""]
    while waiting:
        name = waiting.pop()
        if name and (times[name] <= limit or not children[name]):
            found.add(name)
        else:
            waiting += children[name]
            if name:
                found.add(name)
    return found


def _starts(operations: Sequence[TracedOperation], cuts: set[str]) -> list[tuple[int, str]]:
    """Where each part begins in forward; what runs outside of the modules, such as a loss, belongs to the one before.

    A module that runs again later belongs to what surrounds it.
    """
    starts: list[tuple[int, str]] = []
    seen: set[str] = set()
    present = ""
    for index, operation in enumerate(operations):
        if operation.phase is not Phase.FORWARD:
            continue
        name = _innermost(operation.module, cuts)
        if name and name != present and name not in seen and not present.startswith(f"{name}."):
            seen.add(name)
            starts.append((index, name))
        present = name
    if not starts or starts[0][0] != 0:
        starts.insert(0, (0, ""))
    return starts


def _innermost(module: str, cuts: set[str]) -> str:
    while module and module not in cuts:
        module = module.rpartition(".")[0]
    return module


def _places(operations: Sequence[TracedOperation], starts: Sequence[int]) -> list[int]:
    """The part of each operation: forward by position, backward with the operation that it differentiates."""
    place, current = [], 0
    of_module: dict[tuple[str, str | None], int] = {}
    by_name: dict[str, int] = {}
    for index, operation in enumerate(operations):
        if operation.phase is Phase.FORWARD:
            while current + 1 < len(starts) and index >= starts[current + 1]:
                current += 1
            of_module[operation.module, operation.line] = current
            by_name.setdefault(operation.module, current)
        elif operation.phase is Phase.BACKWARD:
            key = (operation.module, operation.line)
            current = of_module.get(key, by_name.get(operation.module, current))
        place.append(current)
    return place


def _memory(prediction: Prediction, place: Sequence[int]) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    update = prediction.traced.update
    owner: dict[str, int] = {}
    for operation, unit in zip(update.operations, place, strict=True):
        if operation.phase is Phase.FORWARD:
            for name in operation.parameters:
                owner.setdefault(name, unit)
    state: dict[int, int] = defaultdict(int)
    activations: dict[int, int] = defaultdict(int)
    temporaries: dict[int, int] = defaultdict(int)
    for tensor in update.tensors:
        if tensor.is_stored and not tensor.on_host:
            state[owner.get(tensor.owner, 0)] += tensor.bytes
        elif tensor.category is Category.ACTIVATIONS:
            activations[place[max(0, tensor.first)]] += tensor.bytes
        elif not tensor.is_stored and 0 <= tensor.first < len(place):
            unit = place[tensor.first]
            temporaries[unit] = max(temporaries[unit], 2 * tensor.bytes)
    return state, activations, temporaries
