"""That all instances, and all stages of one, begin with the same weights."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from pilotage.errors import DistributedError


class CollectiveGroup(Protocol):
    """Processes that can agree: the instances of a world, or the stages of an instance."""

    @property
    def kind(self) -> str:
        """What one of them is called in messages."""
        ...

    def wait_for_all(self) -> None:
        """Wait for all others for as long as they may have to compile."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """What each of them has here."""
        ...

    def broadcast(self, tensors: Sequence[Tensor], source: int = 0) -> None:
        """Overwrite these tensors by those of one of them."""
        ...


def equalize_weights(others: CollectiveGroup, tensors: Mapping[str, Tensor], own: Collection[str] = ()) -> list[str]:
    """Compare the tensors of all processes and, where they differ, take those of the first; returns the names of these.

    Tensors are compared by digest, so that equal ones cost next to nothing. Those named by ``own``, such as statistics of
    normalisation, are kept where nothing else differs: the processes go on from a training in which each had its own.
    """
    others.wait_for_all()
    shapes = {name: (tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors.items()}
    everyone = others.gather((shapes, {name: _digest(tensor) for name, tensor in tensors.items()}))
    for number, (theirs, _) in enumerate(everyone):
        if theirs != everyone[0][0]:
            raise DistributedError(
                f"{others.kind} {number} trains another model than {others.kind.lower()} 0: "
                f"{_difference(everyone[0][0], theirs)}. All instances have to build the same one."
            )
    unequal = [name for name in tensors if len({digests[name] for _, digests in everyone}) > 1]
    if all(name in own for name in unequal):
        return []
    others.broadcast([tensors[name] for name in unequal])
    return unequal


@torch.no_grad()
def _digest(tensor: Tensor) -> str:
    plain = tensor.detach().to("cpu").contiguous().reshape(-1)
    return hashlib.sha256(plain.view(torch.uint8).numpy().data if plain.numel() else b"").hexdigest()


def _difference(ours: Mapping[str, object], theirs: Mapping[str, object]) -> str:
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return (
        "the order of its tensors" if not names else f"{names[0]} is {theirs.get(names[0])}, not {ours.get(names[0])}"
    )
