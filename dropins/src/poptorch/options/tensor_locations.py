"""Where an IPU keeps its tensors."""

from __future__ import annotations

from typing import Self

from poptorch._errors import require
from poptorch._options_impl import OptionsDict


class TensorLocationSettings(OptionsDict):
    """Where one kind of tensor is kept, and how it gets there."""

    def minElementsForOffChip(self, min_elements: int) -> Self:
        """Always keep smaller tensors on the chip."""
        require(isinstance(min_elements, int), f"minElementsForOffChip takes a whole number, not {min_elements!r}.")
        return self.createOrSet(minElementsForOffChip=min_elements)

    def minElementsForReplicatedTensorSharding(self, min_elements: int) -> Self:
        """Do not shard smaller tensors over replicas."""
        require(
            isinstance(min_elements, int),
            f"minElementsForReplicatedTensorSharding takes a whole number, not {min_elements!r}.",
        )
        return self.createOrSet(minElementsForReplicatedTensorSharding=min_elements)

    def useOnChipStorage(self, use: bool | None = True) -> Self:
        """Keep the tensors on the chip or off it; None leaves it to the backend."""
        if use is None:
            return self.deleteIfExists("onChip")
        return self._switch(onChip=use)

    def useReplicatedTensorSharding(self, use: bool = True) -> Self:
        """Shard the tensors over replicas."""
        return self._switch(useReplicatedTensorSharding=use)

    def useIOTilesToLoad(self, use: bool = True) -> Self:
        """Load the tensors through the tiles reserved for transfers."""
        return self._switch(useIOTilesToLoad=use)

    def useIOTilesToStore(self, use: bool = True) -> Self:
        """Store the tensors through the tiles reserved for transfers."""
        return self._switch(useIOTilesToStore=use)

    def _switch(self, **switch: bool) -> Self:
        for name, on in switch.items():
            require(isinstance(on, bool), f"{name} takes True or False, not {on!r}.")
            self.createOrSet(**{name: int(on)})
        return self


class _TensorLocationOptions(OptionsDict):
    """Where each kind of tensor is kept."""

    def __init__(self) -> None:
        super().__init__(location_activation={}, location_weight={}, location_optimizer={}, location_accumulator={})

    def numIOTiles(self, num_tiles: int) -> Self:
        """Reserve this many tiles for transfers."""
        require(
            isinstance(num_tiles, int) and 32 <= num_tiles <= 192 and num_tiles % 2 == 0,
            f"numIOTiles must be an even number between 32 and 192. It was {num_tiles!r}.",
        )
        return self.createOrSet(numIOTiles=num_tiles)

    def setActivationLocation(self, location: TensorLocationSettings) -> Self:
        """Where activations are kept."""
        return self.set(location_activation=_as_dict(location))

    def setWeightLocation(self, location: TensorLocationSettings) -> Self:
        """Where weights are kept."""
        return self.set(location_weight=_as_dict(location))

    def setOptimizerLocation(self, location: TensorLocationSettings) -> Self:
        """Where the state of the optimizer is kept."""
        return self.set(location_optimizer=_as_dict(location))

    def setAccumulatorLocation(self, location: TensorLocationSettings) -> Self:
        """Where accumulated gradients are kept."""
        return self.set(location_accumulator=_as_dict(location))


def _as_dict(location: TensorLocationSettings) -> dict[str, int]:
    require(
        isinstance(location, TensorLocationSettings),
        f"A location must be a poptorch.TensorLocationSettings, not {location!r}.",
    )
    return location.toDict()
