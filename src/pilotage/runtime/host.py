"""Host tensors that show what the device has trained.

While a device trains, its copy of the weights is newer than the user's module. Copying back after each call would be
slow, and asking the user to do it would be a trap. So the module's tensors are marked stale: they change their class to
one that fetches the device's values the moment anything touches them, by whatever route, and then are plain again.
Neither torch nor the user's module class is altered, and after the first touch nothing of ours is left on the tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

_HOLDER = "_pilotage_trained_weights"
"""Under this name a stale tensor keeps alive what it can be fetched from."""


@dataclass(slots=True)
class Claim:
    """That some host tensors belong to a training run; outlives the run, so that its changes are not forgotten."""

    version: int
    """Grows whenever the device changes the weights; of two claims, the later change has the greater one."""

    owner: weakref.ref[TrainedWeights] | None


class Ownership:
    """Which training run each host tensor belongs to; holds neither tensors nor runs alive."""

    def __init__(self) -> None:
        self._claims = WeakTensorKeyDictionary()
        self._version = 0
        self.generation = 0
        """Grows with every claim and release, so that answers can be kept until then."""

    def claim(self, tensors: Sequence[Tensor], owner: TrainedWeights) -> Claim:
        """These tensors now belong to a training run."""
        self.generation += 1
        claim = Claim(self.latest(self.claims_of(tensors)), weakref.ref(owner))
        for tensor in tensors:
            self._claims[tensor] = claim
        return claim

    def release(self, claim: Claim) -> None:
        """The tensors of a claim belong to nobody any more."""
        self.generation += 1
        claim.owner = None

    def note_change(self, claim: Claim) -> None:
        """The device has changed the weights of a claim."""
        self._version += 1
        claim.version = self._version

    def claims_of(self, tensors: Iterable[Tensor]) -> list[Claim]:
        """What is known about some tensors, each claim once."""
        found = (self._claims.get(tensor) for tensor in tensors)
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
    """The host side of weights that a device trains."""

    def __init__(
        self,
        host: Mapping[str, Tensor],
        device: Callable[[], Mapping[str, Tensor]],
        any_process: Callable[[bool], bool] | None = None,
    ) -> None:
        self._host = dict(host)
        self._device = device
        self._any_process = any_process
        """Where several processes have to fetch together: whether something is true in any of them."""
        self._plain = {name: type(tensor) for name, tensor in self._host.items()}
        self._can_wait = all(kind in _STALE for kind in self._plain.values())
        self._stale = False
        self._shared: list[str] = []
        self.claim()

    @property
    def stale(self) -> bool:
        """Whether the device's weights are newer than the host's."""
        return self._stale

    def claim(self) -> None:
        """Say that the host's tensors belong to this run, and to no other."""
        self._claim = OWNERSHIP.claim(list(self._host.values()), self)

    def changed(self, *, in_failure: bool = False) -> None:
        """The device has changed its weights; where a call has failed, other processes may not come by here."""
        alone = in_failure and self._any_process is not None
        OWNERSHIP.note_change(self._claim)
        if not self._stale:
            self._stale = True
            if not self._can_wait:
                # A parameter class of the user's own is not replaced; such weights are copied back at once.
                if not alone:
                    self.fetch()
                return
            # Only a touch, which brings the weights home, can make an alias: there is none to look for in between.
            self._shared = list(self._host)
            self._forget_lone_ones()
            for name, tensor in self._host.items():
                tensor.__dict__[_HOLDER] = self
                tensor.__class__ = _STALE[self._plain[name]]
        if not alone and self._has_aliases_to_show():
            self._show_aliases()

    def _has_aliases_to_show(self) -> bool:
        has_some = bool(self._shared)
        return has_some if self._any_process is None else self._any_process(has_some)

    def fetch(self) -> bool:
        """Bring the device's weights to the host if they are newer; tells whether they were."""
        if not self._stale:
            return False
        self.discard()
        device = self._device()
        with torch.no_grad():
            for name, tensor in self._host.items():
                tensor.copy_(device[name])
        return True

    def _forget_lone_ones(self) -> None:
        with torch._C.DisableTorchFunctionSubclass():
            self._shared = [name for name in self._shared if _has_aliases(self._host[name])]

    def _show_aliases(self) -> None:
        """Copy at once what can be read through a tensor of the user's own, as ``weight.data`` or ``weight.view(-1)``."""
        self._forget_lone_ones()
        device = self._device()
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            for name in self._shared:
                self._host[name].copy_(device[name])

    def discard(self) -> None:
        """Let the host keep what it has."""
        self._stale = False
        for name, tensor in self._host.items():
            tensor.__class__ = self._plain[name]
            tensor.__dict__.pop(_HOLDER, None)

    def release(self) -> None:
        """Bring the last weights home and let go of the host's tensors."""
        self.fetch()
        OWNERSHIP.release(self._claim)


OWNERSHIP = Ownership()
"""The one piece of state that is shared by all executors of a process: they may wrap the same module."""


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
"""What can be asked of a tensor without looking at its values."""


def _fetching(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Fetch what is stale among the arguments, then do what was asked."""
    kwargs = kwargs or {}
    if func in _METADATA:
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    _fetch(value for value in _flat((*args, *kwargs.values())) if isinstance(value, (StaleParameter, StaleTensor)))
    return func(*args, **kwargs)


def _has_aliases(tensor: Tensor) -> bool:
    """Whether another tensor, or a numpy array, lies in the same memory."""
    users: int = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)
    return users > _USERS_OF_A_LONE_TENSOR


_USERS_OF_A_LONE_TENSOR = 2
"""The tensor, and the handle that is made in order to count."""


def _fetch(stale: Iterable[Tensor]) -> None:
    for tensor in stale:
        if (holder := tensor.__dict__.get(_HOLDER)) is not None:
            holder.fetch()


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
