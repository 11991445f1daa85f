"""Host tensors that show what the device has trained.

While a device trains, its copy of the weights is newer than the user's module. Copying back after each call would be
slow, and asking the user to do it would be a trap. So the module's tensors are marked stale: they change their class to
one that fetches the device's values the moment anything touches them, by whatever route, and then are plain again.
Neither torch nor the user's module class is altered, and after the first touch nothing of ours is left on the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary


class Ownership:
    """Which training run each host tensor belongs to; entries vanish with their tensors."""

    def __init__(self) -> None:
        self._owners = WeakTensorKeyDictionary()
        self.generation = 0
        """Grows with every change, so that answers can be kept until then."""

    def claim(self, tensors: Iterable[Tensor], owner: TrainedWeights) -> None:
        """These tensors now belong to a training run."""
        self.generation += 1
        for tensor in tensors:
            self._owners[tensor] = owner

    def release(self, tensors: Iterable[Tensor]) -> None:
        """These tensors belong to nobody any more."""
        self.generation += 1
        for tensor in tensors:
            self._owners.pop(tensor, None)

    def owners_of(self, tensors: Iterable[Tensor]) -> list[TrainedWeights]:
        """The training runs that some tensors belong to, each once."""
        found = (self._owners.get(tensor) for tensor in tensors)
        return list({id(owner): owner for owner in found if owner is not None}.values())


class TrainedWeights:
    """The host side of weights that a device trains."""

    def __init__(self, host: Mapping[str, Tensor], device: Callable[[], Mapping[str, Tensor]]) -> None:
        self._host = dict(host)
        self._device = device
        self._plain = {name: type(tensor) for name, tensor in self._host.items()}
        self._can_wait = all(kind in _STALE for kind in self._plain.values())
        self._stale = False
        self.version = 0
        """Grows whenever the device changes the weights."""
        OWNERSHIP.claim(self._host.values(), self)

    @property
    def stale(self) -> bool:
        """Whether the device's weights are newer than the host's."""
        return self._stale

    def changed(self) -> None:
        """The device has changed its weights."""
        self.version += 1
        if self._stale:
            return
        self._stale = True
        if not self._can_wait:
            # A parameter class of the user's own is not replaced; such weights are copied back at once.
            self.fetch()
            return
        for name, tensor in self._host.items():
            tensor.__class__ = _STALE[self._plain[name]]

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

    def discard(self) -> None:
        """Let the host keep what it has."""
        self._stale = False
        for name, tensor in self._host.items():
            tensor.__class__ = self._plain[name]

    def release(self) -> None:
        """Bring the last weights home and let go of the host's tensors."""
        self.fetch()
        OWNERSHIP.release(self._host.values())


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
    stale = [value for value in _flat((*args, *kwargs.values())) if isinstance(value, (StaleParameter, StaleTensor))]
    for owner in OWNERSHIP.owners_of(stale):
        owner.fetch()
    return func(*args, **kwargs)


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield value


def _pickled(self: Tensor, protocol: Any) -> Any:
    for owner in OWNERSHIP.owners_of([self]):
        owner.fetch()
    return self.__reduce_ex__(protocol)


def _deep_copied(self: Tensor, memo: dict[int, Any]) -> Any:
    for owner in OWNERSHIP.owners_of([self]):
        owner.fetch()
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
