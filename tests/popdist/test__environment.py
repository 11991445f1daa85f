from __future__ import annotations

import pytest

import popdist
from pilotage.distributed.environments.poprun import poprun_variables
from pilotage.distributed.world import World


def test_the_rank_is_read_when_it_is_used(monkeypatch):
    assert popdist.rank == 0
    for name, value in poprun_variables(World(rank=2, size=3)).items():
        monkeypatch.setenv(name, value)
    assert popdist.rank == popdist.getInstanceIndex() == 2
    assert not hasattr(popdist, "ranks")


def test_without_poprun_there_is_a_single_instance():
    assert not popdist.isPopdistEnvSet()
    assert (popdist.getInstanceIndex(), popdist.getNumInstances(), popdist.getLocalInstanceIndex()) == (0, 1, 0)
    assert (popdist.getNumTotalReplicas(), popdist.getNumLocalReplicas(), popdist.getNumIpusPerReplica()) == (1, 1, 1)
    assert (popdist.getReplicaIndexOffset(), popdist.getDeviceId()) == (0, 0)
    assert popdist.checkNumIpusPerReplica(4)


def test_under_poprun_every_number_comes_from_the_environment(monkeypatch):
    world = World(rank=3, size=4, local_rank=1, replicas_per_instance=2, stages_per_replica=4)
    for name, value in poprun_variables(world).items():
        monkeypatch.setenv(name, value)
    assert popdist.isPopdistEnvSet()
    assert (popdist.getInstanceIndex(), popdist.getNumInstances(), popdist.getLocalInstanceIndex()) == (3, 4, 1)
    assert (popdist.getNumTotalReplicas(), popdist.getNumLocalReplicas(), popdist.getNumIpusPerReplica()) == (8, 2, 4)
    assert (popdist.getReplicaIndexOffset(), popdist.getDeviceId(), popdist.getDeviceId(4)) == (6, 1, 1)
    assert popdist.checkNumIpusPerReplica(4)
    assert not popdist.checkNumIpusPerReplica(2)
    with pytest.raises(RuntimeError, match="--ipus-per-replica 2"):
        popdist.getDeviceId(2)


def test_instances_have_an_index_only_if_they_are_uniform(monkeypatch):
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "3")
    monkeypatch.setenv("POPDIST_UNIFORM_REPLICAS_PER_INSTANCE", "0")
    assert popdist.getNumTotalReplicas() == 3
    for count in (popdist.getInstanceIndex, popdist.getNumInstances):
        with pytest.raises(RuntimeError, match="POPDIST_UNIFORM_REPLICAS_PER_INSTANCE is 0"):
            count()
