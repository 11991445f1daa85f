"""Endless epochs of a loader, with a position that can be saved and resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader

from pilotage.data.empty_loader import empty_loader_error
from pilotage.data.loader import Loader
from pilotage.data.partition import ShardSampler
from pilotage.data.random_state import RandomState
from pilotage.errors import OptionError

__all__ = ["Epochs"]


class Epochs:
    """The batches of a loader without end; a later run can resume from `position`.

    A resumed run gets the batches that this one would have got: it restores the random state of the epoch's start, then
    reads and drops the batches that were seen, as a transform may draw random numbers for each.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        if isinstance(loader, Loader) and not loader.reads_here:
            raise OptionError(
                "This loader reads ahead in a separate process, whose position is unknown. Use num_workers instead of "
                "an asynchronous mode to be able to resume in the middle of an epoch."
            )
        self._loader = loader
        self._generators = _generators_of(loader)
        self._began: dict[str, Any] | None = None
        self._resumed: Mapping[str, Any] | None = None
        self.epoch = 0
        """Completed epochs."""
        self.batch = 0
        """Batches of this epoch so far."""

    def position(self) -> dict[str, Any]:
        """The position after the last batch, as plain data for a checkpoint."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "began": self._began,
            "now": RandomState.current(self._generators).as_plain_data(),
        }

    def resume(self, position: Mapping[str, Any]) -> None:
        """Continue after the batch at which the position was taken."""
        missing = {"epoch", "batch", "began", "now"} - set(position)
        if missing:
            raise OptionError(f"Not a position of Epochs: {', '.join(sorted(missing))} is missing.")
        self._resumed = position

    def __iter__(self) -> Iterator[Any]:
        if self._resumed is not None:
            yield from self._rest_of_epoch(self._resumed)
        while True:
            self._set_epoch()
            self._began = RandomState.current(self._generators).as_plain_data()
            yield from self._counted(iter(self._loader))
            if self.batch == 0:
                raise _empty_loader_error(self._loader)
            self.epoch, self.batch = self.epoch + 1, 0

    def _rest_of_epoch(self, position: Mapping[str, Any]) -> Iterator[Any]:
        self._resumed = None
        self.epoch, self.batch, self._began = position["epoch"], position["batch"], position["began"]
        if self._began is not None:
            self._set_epoch()
            RandomState.from_plain_data(self._began).restore(self._generators)
            batches = iter(self._loader)
            seen = sum(1 for _ in islice(batches, self.batch))
            if seen < self.batch:
                raise OptionError(
                    f"The position is after batch {self.batch} of an epoch, but this loader has only {seen}. "
                    "Resume with the same data and batch size."
                )
        RandomState.from_plain_data(position["now"]).restore(self._generators)
        if self._began is not None:
            yield from self._counted(batches)
            self.epoch, self.batch = self.epoch + 1, 0

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self.batch += 1
            yield batch

    def _set_epoch(self) -> None:
        sampler = self._loader.sampler
        if isinstance(sampler, ShardSampler):
            sampler.go_to_epoch(self.epoch)
        elif hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self.epoch)


def _empty_loader_error(loader: DataLoader[Any]) -> OptionError:
    dataset: Any = loader.dataset
    return empty_loader_error(
        items=len(dataset) if hasattr(dataset, "__len__") else None, own_items=None, combined=loader.batch_size
    )


def _generators_of(loader: DataLoader[Any]) -> list[torch.Generator]:
    """The user's generators that the loader draws from."""
    holders = (loader, loader.sampler, loader.batch_sampler)
    found = [getattr(holder, "generator", None) for holder in holders]
    return list({id(each): each for each in found if isinstance(each, torch.Generator)}.values())
