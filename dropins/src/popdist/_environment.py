"""The place of this instance, from poprun's variables."""

from __future__ import annotations

import os

from pilotage.engine import World, poprun, variables


def world_here() -> World:
    """The world of this instance; a single instance without poprun."""
    return poprun.poprun_world(os.environ) or World()


def isPopdistEnvSet() -> bool:
    """Whether poprun started this process."""
    return poprun.is_under_poprun(os.environ)


def getInstanceIndex() -> int:
    """The index of this instance; all instances must have the same number of replicas."""
    _check_uniform()
    return world_here().rank


def getNumInstances() -> int:
    """The number of instances; all of them must have the same number of replicas."""
    _check_uniform()
    return world_here().size


def getLocalInstanceIndex() -> int:
    """The index of this instance on its host."""
    return world_here().local_rank


def getNumTotalReplicas() -> int:
    """The total number of replicas of all instances."""
    return world_here().replicas


def getNumLocalReplicas() -> int:
    """The number of replicas of this instance."""
    return world_here().replicas_per_instance


def getNumIpusPerReplica() -> int:
    """The number of devices of one replica."""
    return world_here().stages_per_replica


def getReplicaIndexOffset() -> int:
    """The index of this instance's first replica among all."""
    return world_here().first_replica


def getDeviceId(ipusPerReplica: int = 0) -> int:
    """The index of this instance's device on its host; ``ipusPerReplica`` 0 uses poprun's number."""
    if ipusPerReplica and not checkNumIpusPerReplica(ipusPerReplica):
        raise RuntimeError(
            f"The replicas have {ipusPerReplica} IPUs each, but poprun was started with {getNumIpusPerReplica()}. "
            f"Start it with --ipus-per-replica {ipusPerReplica}."
        )
    return world_here().local_rank


def checkNumIpusPerReplica(numIpusPerReplica: int) -> bool:
    """Whether poprun was started with this number; without poprun any number is accepted."""
    return not isPopdistEnvSet() or getNumIpusPerReplica() == numIpusPerReplica


def _check_uniform() -> None:
    if not variables.number(os.environ, poprun.UNIFORM, 1):
        raise RuntimeError(
            f"{poprun.UNIFORM} is 0: instances have different numbers of replicas, so they have no index. Start "
            "poprun with a number of replicas that is a multiple of the number of instances."
        )
