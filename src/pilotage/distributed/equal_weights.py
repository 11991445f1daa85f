"""Make all instances, and all stages of an instance, start with the same weights."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from pilotage.distributed.same_exchange import WITH_WEIGHTS, GatheringGroup, Settings, gather_at
from pilotage.errors import DistributedError


class CollectiveGroup(GatheringGroup, Protocol):
    """Processes with collective operations: the instances of a world, or the stages of an instance."""

    def broadcast(self, tensors: Sequence[Tensor], source: int = 0) -> None:
        """Overwrite these tensors with those of one process."""
        ...


def equalize_weights(
    group: CollectiveGroup,
    tensors: Mapping[str, Tensor],
    own: Collection[str] = (),
    settings: Settings | None = None,
) -> list[str]:
    """Overwrite tensors that differ between processes with those of the first; returns their names.

    Tensors are compared by digest, so that equal ones cost almost nothing. If only tensors named in ``own`` differ,
    such as statistics of normalisation, they are kept: the processes resume a training in which each had its own.
    Raises if the ``settings`` of the processes differ.
    """
    shapes = {name: (tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors.items()}
    digests_here = {name: _digest(tensor) for name, tensor in tensors.items()}
    everyone = gather_at(WITH_WEIGHTS, group, (shapes, digests_here), settings)
    for number, (theirs, _) in enumerate(everyone):
        if theirs != everyone[0][0]:
            raise DistributedError(
                f"{group.kind} {number} trains another model than {group.kind.lower()} 0: "
                f"{_difference(everyone[0][0], theirs)}. All instances must build the same model."
            )
    unequal = [name for name in tensors if len({digests[name] for _, digests in everyone}) > 1]
    if all(name in own for name in unequal):
        return []
    group.broadcast([tensors[name] for name in unequal])
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
