"""Worlds that torch's elastic launcher, or Kubernetes' PyTorchJob, has started."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import meeting_place, number
from pilotage.distributed.world import World


def torchrun_world(environment: Mapping[str, str]) -> World | None:
    """The world of torch's own variables; None where there are none."""
    if not {"RANK", "WORLD_SIZE"} <= environment.keys():
        return None
    address, port = meeting_place(environment)
    return World(
        rank=number(environment, "RANK"),
        size=number(environment, "WORLD_SIZE"),
        local_rank=number(environment, "LOCAL_RANK", 0),
        address=address,
        port=port,
        launcher="torchrun",
    )
