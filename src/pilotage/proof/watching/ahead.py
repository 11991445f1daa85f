"""Which of the batches that a script has loaded goes into a backward pass: a script may load some of them ahead."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from pilotage.proof.watching.digests import picked_elements

if TYPE_CHECKING:
    from pilotage.proof.watching.loaders import Load
    from pilotage.proof.watching.watch import Pending

__all__ = ["LoadedAhead", "Places", "addresses_of", "places_of"]

Places = Sequence[tuple[int, StorageWeakRef]]
"""Addresses of tensors, each with a reference that shows whether that memory is still in use."""

_IN_ORDER = sys.maxsize
"""The lag of a loader in another thread: how many batches it is ahead changes, so they are taken one by one."""


def places_of(tensors: Iterable[Tensor]) -> Places:
    """The addresses of the tensors of a batch."""
    found = []
    for each in tensors:
        address = _address(each)
        if address:
            found.append((address, StorageWeakRef(each.untyped_storage())))
    return found


def addresses_of(tensors: Iterable[Tensor]) -> set[int]:
    """The addresses of the tensors that a module is given."""
    return {address for each in tensors if (address := _address(each))}


def _address(tensor: Tensor) -> int:
    """The address of a tensor; 0 if it is unknown."""
    if type(tensor) is not Tensor or tensor.layout is not torch.strided:
        return 0
    try:
        return tensor.data_ptr()
    except RuntimeError:  # Inside of a transformation of functions.
        return 0


class LoadedAhead:
    """Finds out in the first updates how many batches a loader is ahead, and gives each backward pass its batch.

    The batch of a backward pass is the one that the outermost module was given, itself or as a copy on another device.
    Where that cannot be seen, since the script computes the input from the batch, all batches before the first backward
    pass count as loaded ahead.
    """

    def __init__(self) -> None:
        self._lags: dict[int, int] = {}
        """How many batches each loader is ahead."""
        self._seen: set[int] = set()
        """Loaders whose batches a module was seen to get."""
        self.is_ahead = False
        """Whether any batch was loaded before the one in front of it was used."""

    def at_backward(
        self, pending: Pending, given: Collection[int], rows: int | None, inputs: Sequence[Tensor] = ()
    ) -> None:
        """A backward pass begins, after a forward pass on this many rows of ``inputs`` at these addresses."""
        batches = pending.batches
        last = batches[-1]
        if given or last.loader not in self._lags:
            self._learn(pending, given, inputs)
        if self.is_ahead:
            self._take(pending, rows)
            return
        pending.loader = last.loader
        if len(batches) > pending.used + 1:
            _skip([each for each in batches[pending.used :] if each.loader == last.loader], rows)
        pending.used = len(batches)

    def _learn(self, pending: Pending, given: Collection[int], inputs: Sequence[Tensor]) -> None:
        fresh = self._fresh(pending)
        found = next((each for each in reversed(fresh) if given and _lies_at(each, given)), None)
        if found is None and len(fresh) > 1:
            found = next((each for each in reversed(fresh) if _was_copied(each, inputs)), None)
        if not fresh or (found is None and any(each.loader in self._lags for each in fresh)):
            return
        load = found or fresh[-1]
        own = [each for each in fresh if each.loader == load.loader]
        if load.thread != get_ident():
            lag = _IN_ORDER
        elif found is not None:
            lag = len(own) - 1 - own.index(found)
        elif self._seen:
            lag = self._lags[max(self._seen)]
        else:
            lag = sum(each.epoch == load.epoch for each in own) - 1
        self._set(pending, load.loader, lag, is_seen=found is not None)

    def _set(self, pending: Pending, loader: int, lag: int, *, is_seen: bool) -> None:
        if is_seen:
            # At the end of an epoch, nothing is ahead.
            lag = max(lag, self._lags[loader]) if loader in self._seen else lag
            self._seen.add(loader)
        self._lags[loader] = lag
        if lag:
            self._begin(pending)

    def _begin(self, pending: Pending) -> None:
        if not self.is_ahead:
            self.is_ahead = True
            for each in pending.batches[: pending.used]:
                each.is_taken = True

    def _fresh(self, pending: Pending) -> list[Load]:
        """Batches that no backward pass was for."""
        if self.is_ahead:
            return [each for each in pending.batches if not each.is_taken]
        return pending.batches[pending.used :]

    def _take(self, pending: Pending, rows: int | None) -> None:
        is_new = len(pending.batches) > pending.used
        pending.used = len(pending.batches)
        fresh = [each for each in self._fresh(pending) if each.loader in self._lags]
        if not fresh:
            return
        loader = fresh[-1].loader
        own = [each for each in fresh if each.loader == loader]
        lag = self._lags[loader]
        # Without a new batch, this is a second backward pass for the same one, unless there are no more.
        if not is_new and lag != _IN_ORDER and not own[-1].is_last:
            return
        pending.loader = loader
        taken = own[: max(0, len(own) - 1 - lag) + 1]
        _skip(taken, rows)
        for each in taken:
            each.is_taken = True

    def leave_out(self, pending: Pending) -> tuple[list[Load], int]:
        """After an update, take out the batches for later ones; how many of them were there at its backward pass."""
        if not self.is_ahead:
            if not 0 < pending.used < len(pending.batches):
                return [], 0
            self._begin(pending)
        early = sum(not each.is_taken and each.loader in self._lags for each in pending.batches[: pending.used])
        batches = pending.batches
        pending.batches = [each for each in batches if each.is_taken]
        return [each for each in batches if not each.is_taken and each.loader in self._lags], early


def _skip(loads: list[Load], rows: int | None) -> None:
    """The last of these batches is used; the others were skipped if a forward pass got just one."""
    if len(loads) > 1 and rows == loads[-1].samples:
        for each in loads[:-1]:
            each.is_skipped = True


def _was_copied(load: Load, inputs: Sequence[Tensor]) -> bool:
    """Whether an input of a module is a copy of a tensor of the batch on another device."""
    moved = [each for each in inputs if not each.is_cpu and each.layout is torch.strided]
    return any(torch.equal(mine, theirs.cpu()) for theirs in picked_elements(moved) for mine in load.picked)


def _lies_at(load: Load, addresses: Collection[int]) -> bool:
    """Whether a tensor of the batch still lies at one of these addresses."""
    return any(address in addresses and not memory.expired() for address, memory in load.places)
