"""Parameters of which each group of replicas has its own copy."""

from __future__ import annotations

from torch import nn

from pilotage.errors import OptionError
from pilotage.options.batching import Batching, group_of
from pilotage.options.choices import ReplicaGrouping
from pilotage.program.layout import ReplicaGroups


def replica_groups(
    module: nn.Module, parameter: str, batching: Batching, members: int, grouping: ReplicaGrouping
) -> ReplicaGroups:
    """Which replica uses which copy; the host's tensor holds the copies along its leading dimension."""
    replicas = batching.replicas
    if batching.instances > 1:
        raise OptionError(f"Replicas cannot be grouped for {parameter} with several instances. Use one instance.")
    if members < 1 or replicas % members:
        raise OptionError(f"Groups of {members} replicas do not divide {replicas} replicas evenly.")
    shape = tuple(module.get_parameter(parameter).shape)
    groups = ReplicaGroups(tuple(group_of(replica, replicas, members, grouping) for replica in range(replicas)))
    if not shape:
        raise OptionError(
            f"Scalars cannot be passed as per-replica weight tensor values: {parameter} has no leading dimension to "
            f"hold {groups.count} copies."
        )
    if shape[0] != groups.count:
        raise OptionError(
            f"The leading dimension of {parameter} is {shape[0]}. It must be {groups.count}: one copy for each group "
            f"of {members} out of {replicas} replicas."
        )
    return groups
