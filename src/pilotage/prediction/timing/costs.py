"""The time of each operation of an update on a kind of device."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.timing.card import card_cost
from pilotage.prediction.timing.cost import Arithmetic, Cost
from pilotage.prediction.timing.processor import processor_cost
from pilotage.prediction.timing.tiles import tile_cost
from pilotage.prediction.trace.operations import TracedOperation
from pilotage.prediction.trace.work import Work

__all__ = ["costs_of"]


def costs_of(operations: Sequence[TracedOperation], model: DeviceModel, arithmetic: Arithmetic) -> list[Cost]:
    """The time of each operation."""
    known: dict[Work, Cost] = {}
    found = []
    for operation in operations:
        work = operation.work
        if work not in known:
            known[work] = _cost(work, model, arithmetic)
        found.append(known[work])
    return found


def _cost(work: Work, model: DeviceModel, arithmetic: Arithmetic) -> Cost:
    match model.kind:
        case "card":
            return card_cost(work, model, arithmetic)
        case "ipu":
            return tile_cost(work, model)
        case "processor":
            return processor_cost(work, model)
