"""That all instances begin with the same weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from pilotage.distributed.peers import Peers
from pilotage.errors import DistributedError


def settle_weights(peers: Peers, tensors: Mapping[str, Tensor]) -> list[str]:
    """Compare the tensors of all instances and, where they differ, take those of rank 0; returns the names of these.

    Tensors are compared by digest, so that equal ones cost next to nothing.
    """
    peers.meet()
    shapes = {name: (tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors.items()}
    everyone = peers.gather((shapes, {name: _digest(tensor) for name, tensor in tensors.items()}))
    for rank, (theirs, _) in enumerate(everyone):
        if theirs != everyone[0][0]:
            raise DistributedError(
                f"Rank {rank} trains another model than rank 0: {_difference(everyone[0][0], theirs)}. All instances have to "
                "build the same one."
            )
    unequal = [name for name in tensors if len({digests[name] for _, digests in everyone}) > 1]
    peers.broadcast([tensors[name] for name in unequal])
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
