"""What poprun has told this instance."""

from __future__ import annotations

import os

from pilotage.engine import World, poprun, variables


def world_here() -> World:
    """This instance's world; without poprun it is alone."""
    return poprun.poprun_world(os.environ) or World()


def isPopdistEnvSet() -> bool:
    """Whether poprun has started this process."""
    return poprun.is_under_poprun(os.environ)


def getInstanceIndex() -> int:
    """The number of this instance among all; needs equally many replicas in each."""
    _check_uniform()
    return world_here().rank


def getNumInstances() -> int:
    """How many instances there are; needs equally many replicas in each."""
    _check_uniform()
    return world_here().size


def getLocalInstanceIndex() -> int:
    """The number of this instance among those of its host."""
    return world_here().local_rank


def getNumTotalReplicas() -> int:
    """How many replicas all instances have together."""
    return world_here().replicas


def getNumLocalReplicas() -> int:
    """How many replicas this instance has."""
    return world_here().replicas_per_instance


def getNumIpusPerReplica() -> int:
    """How many devices one replica is spread over."""
    return world_here().stages_per_replica


def getReplicaIndexOffset() -> int:
    """The number of this instance's first replica among all."""
    return world_here().first_replica


def getDeviceId(ipusPerReplica: int = 0) -> int:
    """The number of the device that this instance takes on its host; 0 takes what poprun says of replicas."""
    if ipusPerReplica and not checkNumIpusPerReplica(ipusPerReplica):
        raise RuntimeError(
            f"The replicas have {ipusPerReplica} IPUs each, but poprun was told {getNumIpusPerReplica()}. Start it "
            "with "
            f"--ipus-per-replica {ipusPerReplica}."
        )
    return world_here().local_rank


def checkNumIpusPerReplica(numIpusPerReplica: int) -> bool:
    """Whether poprun was told the same number; without poprun any number will do."""
    return not isPopdistEnvSet() or getNumIpusPerReplica() == numIpusPerReplica


def _check_uniform() -> None:
    if not variables.number(os.environ, poprun.UNIFORM, 1):
        raise RuntimeError(
            f"{poprun.UNIFORM} is 0: instances have different numbers of replicas, so they cannot be counted by "
            "replicas. Start "
            "poprun with a number of replicas that the number of instances divides."
        )
