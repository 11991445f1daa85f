from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.environments.poprun import poprun_variables, poprun_world
from pilotage.distributed.world import World
from pilotage.errors import OptionError


@st.composite
def worlds(draw):
    size = draw(st.integers(1, 64))
    rank = draw(st.integers(0, size - 1))
    stages = draw(st.integers(1, 4))
    return World(
        rank=rank,
        size=size,
        local_rank=draw(st.integers(0, rank)),
        replicas_per_instance=draw(st.integers(1, 16)),
        stages_per_replica=stages,
        stage=draw(st.none() | st.integers(0, stages - 1)) if stages > 1 else None,
        address=draw(st.sampled_from([None, "10.0.0.1", "host"])),
        port=draw(st.none() | st.integers(1, 65535)),
        launcher="poprun",
    )


@given(worlds())
def test_an_instance_reads_back_what_poprun_sets(world):
    assert poprun_world(poprun_variables(world)) == world


def test_the_variables_are_those_of_a_logged_command_line():
    world = World(rank=1, size=2, local_rank=1, replicas_per_instance=2)
    assert poprun_variables(world) == {
        "POPDIST_NUM_TOTAL_REPLICAS": "4",
        "POPDIST_NUM_IPUS_PER_REPLICA": "1",
        "POPDIST_NUM_LOCAL_REPLICAS": "2",
        "POPDIST_UNIFORM_REPLICAS_PER_INSTANCE": "1",
        "POPDIST_REPLICA_INDEX_OFFSET": "2",
        "POPDIST_LOCAL_INSTANCE_INDEX": "1",
    }


def test_a_job_started_by_a_stage_does_not_inherit_its_stage():
    around = poprun_variables(World(stages_per_replica=2, stage=1))
    inside = poprun_variables(World(size=2, rank=1))
    assert poprun_world({**around, **inside}) == World(size=2, rank=1, launcher="poprun")


def test_without_the_number_of_replicas_a_process_is_not_under_poprun():
    assert poprun_world({"POPDIST_NUM_LOCAL_REPLICAS": "2"}) is None


@pytest.mark.parametrize(
    "variables",
    [
        {"POPDIST_NUM_TOTAL_REPLICAS": "3", "POPDIST_NUM_LOCAL_REPLICAS": "2"},
        {"POPDIST_NUM_TOTAL_REPLICAS": "4", "POPDIST_NUM_LOCAL_REPLICAS": "0"},
        {"POPDIST_NUM_TOTAL_REPLICAS": "4", "POPDIST_NUM_LOCAL_REPLICAS": "2", "POPDIST_REPLICA_INDEX_OFFSET": "1"},
        {"POPDIST_NUM_TOTAL_REPLICAS": "many"},
    ],
)
def test_numbers_that_contradict_each_other_are_refused_by_name(variables):
    with pytest.raises(OptionError, match="POPDIST_NUM"):
        poprun_world(variables)
