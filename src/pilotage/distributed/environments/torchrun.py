"""The variables of torchrun and of Kubernetes' PyTorchJob."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import is_on_one_host, master_address, number
from pilotage.distributed.world import World


def torchrun_world(environment: Mapping[str, str]) -> World | None:
    """The world in torch's own variables; None if there are none."""
    if not {"RANK", "WORLD_SIZE"} <= environment.keys():
        return None
    address, port = master_address(environment)
    size = number(environment, "WORLD_SIZE")
    on_this_host = number(environment, "LOCAL_WORLD_SIZE", 0)
    return World(
        rank=number(environment, "RANK"),
        size=size,
        local_rank=number(environment, "LOCAL_RANK", 0),
        address=address,
        port=port,
        one_host=on_this_host == size if on_this_host else is_on_one_host(environment, address),
        launcher="torchrun",
    )
