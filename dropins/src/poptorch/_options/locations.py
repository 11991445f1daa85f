"""Translates PopTorch's tensor locations into the engine's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotage.engine import Locations
from poptorch._logging import logger
from poptorch.enums import Liveness
from poptorch.options import Options

__all__ = ["advise_on_locations", "locations_of"]

_SMALLEST_OFF_CHIP = 2
_SMALLEST_SHARED = 8192
"""PopART's defaults of ``minElementsFor...``."""


def locations_of(options: Options) -> Locations:
    """What is offloaded to the host, and what is sharded over the processes."""
    activation, optimizer = options.TensorLocations.location_activation, options.TensorLocations.location_optimizer
    leaves_after_forward = _liveness(options) is not Liveness.AlwaysLive
    return Locations(
        activations=_smallest(activation) if _is_off_chip(activation) or leaves_after_forward else None,
        optimizer=_smallest(optimizer) if _is_off_chip(optimizer) else None,
        shared_optimizer=(
            optimizer.get("minElementsForReplicatedTensorSharding", _SMALLEST_SHARED) if _is_shared(optimizer) else None
        ),
    )


def advise_on_locations(options: Options) -> None:
    """Warn of locations that have no effect here."""
    for name in ("Activation", "Weight", "Accumulator"):
        location = getattr(options.TensorLocations, f"location_{name.lower()}")
        if _is_off_chip(location) and name != "Activation":
            logger.warning(
                "set%sLocation has no effect: these tensors stay in the memory of the device. Only activations and "
                "the optimizer state can be kept on the host.",
                name,
            )
        if _is_shared(location):
            logger.warning("set%sLocation: useReplicatedTensorSharding affects only the optimizer state.", name)


def _liveness(options: Options) -> Liveness:
    return Liveness(options._execution_strategy.backendOptions().get("tensors_liveness", Liveness.AlwaysLive))


def _is_off_chip(location: Mapping[str, Any]) -> bool:
    return location.get("onChip") == 0


def _is_shared(location: Mapping[str, Any]) -> bool:
    return location.get("useReplicatedTensorSharding") == 1


def _smallest(location: Mapping[str, Any]) -> int:
    smallest: int = location.get("minElementsForOffChip", _SMALLEST_OFF_CHIP)
    return smallest
