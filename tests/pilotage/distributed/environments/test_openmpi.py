from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.environments.openmpi import openmpi_world
from pilotage.errors import OptionError


def variables(rank: int, size: int, *, local_size: int, **more: str) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank % local_size),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size),
        **more,
    }


@given(st.integers(1, 16), st.text(min_size=1))
def test_on_one_host_all_ranks_derive_the_same_address(size, job):
    worlds = [openmpi_world(variables(rank, size, local_size=size, PMIX_NAMESPACE=job)) for rank in range(size)]
    assert [world.rank for world in worlds] == list(range(size))
    assert {(world.address, world.port) for world in worlds} == {("127.0.0.1", worlds[0].port)}


def test_on_several_hosts_master_addr_has_to_be_set():
    assert openmpi_world(variables(1, 4, local_size=2)).address is None
    told = openmpi_world(variables(1, 4, local_size=2, MASTER_ADDR="node0", MASTER_PORT="1234"))
    assert (told.address, told.port) == ("node0", 1234)


def test_without_mpi_variables_there_is_no_world_and_incomplete_ones_are_an_error():
    assert openmpi_world({}) is None
    with pytest.raises(OptionError, match="OMPI_COMM_WORLD_RANK is missing"):
        openmpi_world({"OMPI_COMM_WORLD_SIZE": "2"})
