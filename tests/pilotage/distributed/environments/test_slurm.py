from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.environments.slurm import slurm_world


def variables(rank: int, size: int, **more: str) -> dict[str, str]:
    return {
        "SLURM_JOB_ID": "77",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_NTASKS": str(size),
        "SLURM_LOCALID": str(rank % 4),
        "SLURM_STEP_NODELIST": "gc[12-14]",
        **more,
    }


@given(st.integers(1, 64))
def test_all_tasks_of_a_step_meet_on_its_first_node(size):
    worlds = [slurm_world(variables(rank, size)) for rank in range(size)]
    assert [world.rank for world in worlds] == list(range(size))
    assert {(world.address, world.port) for world in worlds} == {("gc12", worlds[0].port)}


def test_steps_of_one_job_meet_at_different_ports():
    one, other = slurm_world(variables(0, 2)), slurm_world(variables(0, 2, SLURM_STEP_ID="1"))
    assert one.port != other.port


def test_a_batch_script_is_not_an_instance():
    batch = {name: value for name, value in variables(0, 4).items() if name != "SLURM_STEP_ID"}
    assert slurm_world(batch) is None


def test_master_addr_and_port_take_precedence():
    told = slurm_world(variables(0, 2, MASTER_ADDR="head", MASTER_PORT="4000"))
    assert (told.address, told.port) == ("head", 4000)


def test_a_step_on_one_node_is_on_one_host():
    for told, expected in [({"SLURM_STEP_NUM_NODES": "1"}, True), ({"SLURM_NNODES": "2"}, False), ({}, False)]:
        world = slurm_world({**variables(0, 2), "SLURM_STEP_NUM_NODES": "", "SLURM_NNODES": "", **told})
        assert world is not None
        assert world.one_host is expected
