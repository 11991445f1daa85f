"""Host tensors that show what the device has trained.

While a device trains, its copy of the weights is newer than the user's module. Copying back after each call would be
slow, and users would forget to do it themselves. So the module's tensors are marked stale: their class changes to one
that fetches the device's values as soon as any operation uses them, and then changes back. Neither torch nor the user's
module class is altered, and after the first use nothing of ours is left on the tensors.

An exception can occur at any point. So tensors are marked before the device changes its weights, all of them are copied
by one call, and the marks are removed only after that: the host's tensors are all old or all new, and marked ones are
fetched again.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad
from torch.utils.weak import WeakTensorKeyDictionary

from pilotage.errors import WeightsError
from pilotage.torch_private import DisableTorchFunctionSubclass, foreach_copy_, storage_address, storage_use_count
from pilotage.turns import PROCESS_WIDE, Turn

_HOLDER = "_pilotage_trained_weights"
"""The attribute of a stale tensor that keeps the object alive from which its values are fetched."""


@dataclass(slots=True)
class Claim:
    """Marks host tensors as those of a training run; outlives the run, so that its changes stay known."""

    version: int
    """Grows whenever the device changes the weights; of two claims, the later change has the greater one."""

    owner: weakref.ref[TrainedWeights] | None


class Ownership:
    """Which training run each host tensor belongs to; holds neither tensors nor runs alive."""

    def __init__(self) -> None:
        self._claims = WeakTensorKeyDictionary()
        self._turns = WeakTensorKeyDictionary()
        self._turn = Turn()
        self.versions = itertools.count(1)
        """The versions of all changes, in the order in which devices made them."""
        self.generation = 0
        """Grows with every claim and release, so that answers can be cached until the next one."""

    def turn_of(self, tensors: Iterable[Tensor]) -> Turn:
        """The turn of all users of these tensors; users that had different turns share one from now on."""
        tensors = list(tensors)
        with self._turn:
            found = {id(turn): turn for turn in map(self._turns.get, tensors) if turn is not None}
            first, *others = found.values() or [Turn()]
            for tensor in tensors:
                self._turns[tensor] = first
        for other in others:
            other.join(first)
        return first

    def claim(self, tensors: Sequence[Tensor], owner: TrainedWeights) -> Claim:
        """Record that these tensors now belong to a training run."""
        with self._turn:
            claim = Claim(self.latest(self.claims_of(tensors)), weakref.ref(owner))
            for tensor in tensors:
                self._claims[tensor] = claim
            self.generation += 1
        return claim

    def release(self, claim: Claim) -> None:
        """The tensors of a claim no longer belong to a training run."""
        with self._turn:
            claim.owner = None
            self.generation += 1

    def claims_of(self, tensors: Iterable[Tensor]) -> list[Claim]:
        """The claims on some tensors, each once."""
        with self._turn:
            found = [self._claims.get(tensor) for tensor in tensors]
        return list({id(claim): claim for claim in found if claim is not None}.values())

    def owners_of(self, tensors: Iterable[Tensor]) -> list[TrainedWeights]:
        """The training runs that some tensors belong to, each once."""
        owners = (claim.owner() for claim in self.claims_of(tensors) if claim.owner is not None)
        return [owner for owner in owners if owner is not None]

    @staticmethod
    def latest(claims: Iterable[Claim]) -> int:
        """The version of the latest change."""
        return max((claim.version for claim in claims), default=0)


class TrainedWeights:
    """The host side of weights that a device trains.

    Large because every read, write, claim and release of these tensors goes through it.
    """

    def __init__(
        self,
        host: Mapping[str, Tensor],
        device: Callable[[], Mapping[str, Tensor]],
        turn: Turn,
        any_process: Callable[[bool], bool] | None = None,
        *,
        copied: Callable[[], None],
        clipped: Callable[[], None],
    ) -> None:
        self._host = dict(host)
        self._device = device
        self._turn = turn
        self._any_process = any_process
        """Where several processes have to fetch together: whether something is true in any of them."""
        self._copied = copied
        """Called after the device's values were written to the host's tensors."""
        self.read_by: Callable[[], object] | None = None
        """A drop-in's callback for reads of the host's tensors while they are stale; it may fetch them itself."""
        self.clipped = clipped
        """Called when torch looks for gradients to clip and the host has none."""
        self._plain = {name: type(tensor) for name, tensor in self._host.items()}
        self._can_wait = all(kind in _STALE for kind in self._plain.values())
        self._stale = False
        self._is_marked = False
        """Whether all of the host's tensors are marked as stale."""
        self._shared: list[str] = []
        self.is_untouched = False
        """Whether the host's tensors cannot have been written to since the device trained them."""
        self.claim()

    @property
    def stale(self) -> bool:
        """Whether the device's weights are newer than the host's."""
        return self._stale

    @property
    def current(self) -> Collection[str]:
        """The names of the host's tensors that have the device's values, unless the user has written to them."""
        return self._shared if self._stale else self._host.keys()

    def claim(self) -> None:
        """Claim the host's tensors for this run."""
        self._claim = OWNERSHIP.claim(list(self._host.values()), self)

    def expect_change(self) -> None:
        """Note that the device is about to change its weights: from now on, using the host's tensors fetches them."""
        self._claim.version = next(OWNERSHIP.versions)
        self._stale = True
        # The user's own parameter classes are not replaced; such weights are copied back after each call.
        if self._can_wait and not self._is_marked:
            self._mark()

    def _mark(self) -> None:
        # An alias can only be made by an operation, and operations fetch the weights: until then no new ones appear.
        self._shared = list(self._host)
        self._forget_unshared()
        for name, tensor in self._host.items():
            tensor.__dict__[_HOLDER] = self
            tensor.__class__ = _STALE[self._plain[name]]
        self._is_marked = True
        self.is_untouched = not self._shared

    def changed(self, *, in_failure: bool = False) -> None:
        """Note that the device has changed its weights; if a call has failed, other processes may not call this."""
        self._claim.version = next(OWNERSHIP.versions)
        if not (self._stale and self._is_marked):
            # Another thread has read the weights in the middle of the call.
            self.expect_change()
        if in_failure and self._any_process is not None:
            return
        has_aliases = bool(self._shared)
        if not self._can_wait:
            self.fetch()
        elif has_aliases if self._any_process is None else self._any_process(has_aliases):
            self._show_aliases()

    def fetch_when_read(self) -> None:
        """Copy the device's weights to the host before a read, if they are newer."""
        if self._stale and self.read_by is not None:
            self.read_by()
        self.fetch()

    def fetch(self) -> bool:
        """Copy the device's weights to the host if they are newer; returns whether they were."""
        left = _LONGEST_WAIT
        # The thread that holds the turn may fetch them first, and then wait for something that this thread holds.
        while self._stale and left > 0:
            if self._turn.take(_LOOK_AGAIN):
                try:
                    return self._fetch()
                finally:
                    self._turn.give()
            left -= _LOOK_AGAIN if PROCESS_WIDE.is_mine else 0.0
        if self._stale:
            raise WeightsError(
                "These weights belong to a model that another thread is running, and that thread waits for this one. "
                "Do not use the weights of one model in the forward of another one while they are trained in "
                "another thread."
            )
        return False

    def _fetch(self) -> bool:
        if not self._stale:
            return False
        _copy_all(self._host, self._device())
        self._copied()
        self.discard()
        return True

    def _forget_unshared(self) -> None:
        with DisableTorchFunctionSubclass():
            self._shared = [name for name in self._shared if _has_aliases(self._host[name])]

    def _show_aliases(self) -> None:
        """Copy the weights that the user can read through another tensor, such as ``weight.data``."""
        self._forget_unshared()
        self.is_untouched = not self._shared
        _copy_all({name: self._host[name] for name in self._shared}, self._device())
        self._copied()

    def discard(self) -> None:
        """Drop the device's newer values; the host keeps its own."""
        self.is_untouched = self._is_marked = False
        for name, tensor in self._host.items():
            tensor.__class__ = self._plain[name]
            tensor.__dict__.pop(_HOLDER, None)
        self._stale = False

    def release(self) -> None:
        """Fetch the last weights and release the host's tensors."""
        try:
            self.fetch()
        except WeightsError:
            # What cannot be fetched is lost; do not try again.
            self.discard()
            raise
        OWNERSHIP.release(self._claim)


_LOOK_AGAIN, _LONGEST_WAIT = 0.05, 60.0
"""Seconds after which a thread that waits for weights looks again, and gives up if the other thread waits for it."""


def _copy_all(targets: Mapping[str, Tensor], sources: Mapping[str, Tensor]) -> None:
    """Copy all tensors or none: shapes that do not match are refused before the first copy."""
    with torch.no_grad(), DisableTorchFunctionSubclass():
        for name, target in targets.items():
            if target.shape != sources[name].shape:
                raise WeightsError(
                    f"The weight {name} on the host has become {tuple(target.shape)}, and on the device it is "
                    f"{tuple(sources[name].shape)}. destroy() the model before you change the shapes of its weights."
                )
        if targets:
            # A single C call, which no Python exception can interrupt.
            foreach_copy_(list(targets.values()), [sources[name] for name in targets])


OWNERSHIP = Ownership()
"""Shared by all executors of a process, because several of them may wrap the same module."""


_METADATA = frozenset(
    {
        Tensor.size,
        Tensor.dim,
        Tensor.numel,
        Tensor.stride,
        Tensor.element_size,
        Tensor.is_contiguous,
        Tensor.is_floating_point,
        *(
            getattr(Tensor, name).__get__
            for name in ("shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_leaf", "grad")
        ),
    }
)
"""Functions of a tensor that do not read its values."""


def _fetching(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Fetch the stale arguments, then call the function."""
    kwargs = kwargs or {}
    if func in _METADATA:
        with DisableTorchFunctionSubclass():
            found = func(*args, **kwargs)
        if found is None and sys._getframe(1).f_code.co_filename == _CLIPPING:
            holder: TrainedWeights | None = args[0].__dict__.get(_HOLDER)
            if holder is not None:
                holder.clipped()
        return found
    _fetch(value for value in _flat((*args, *kwargs.values())) if isinstance(value, (StaleParameter, StaleTensor)))
    return func(*args, **kwargs)


_CLIPPING = clip_grad.__file__


def _has_aliases(tensor: Tensor) -> bool:
    """Whether another tensor, or a numpy array, lies in the same memory."""
    users: int = storage_use_count(storage_address(tensor.untyped_storage()))
    return users > _USERS_OF_AN_UNSHARED_TENSOR


_USERS_OF_AN_UNSHARED_TENSOR = 2
"""The references that are always there: the tensor, and the handle that is made in order to count."""


def _fetch(stale: Iterable[Tensor]) -> None:
    for tensor in stale:
        holder: TrainedWeights | None = tensor.__dict__.get(_HOLDER)
        if holder is not None:
            holder.fetch_when_read()
        if holder is None or not holder.stale:
            # Otherwise the weights of a leftover mark would be fetched again and again.
            tensor.__class__ = _PLAIN.get(type(tensor), type(tensor))


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield value


def _pickled(self: Tensor, protocol: Any) -> Any:
    _fetch([self])
    return self.__reduce_ex__(protocol)


def _deep_copied(self: Tensor, memo: dict[int, Any]) -> Any:
    _fetch([self])
    return self.__deepcopy__(memo)


class StaleParameter(nn.Parameter):
    """A parameter whose newer values are on the device."""

    __torch_function__ = classmethod(_fetching)  # type: ignore[var-annotated]
    __reduce_ex__ = _pickled
    __deepcopy__ = _deep_copied


class StaleTensor(Tensor):
    """A buffer whose newer values are on the device."""

    __torch_function__ = classmethod(_fetching)  # type: ignore[var-annotated]
    __reduce_ex__ = _pickled
    __deepcopy__ = _deep_copied


_STALE: dict[type, type] = {nn.Parameter: StaleParameter, Tensor: StaleTensor}
_PLAIN = {stale: plain for plain, stale in _STALE.items()}
