from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.environments.torchrun import torchrun_world
from pilotage.distributed.world import World


@given(st.integers(1, 99).flatmap(lambda size: st.tuples(st.integers(0, size - 1), st.just(size))))
def test_torchs_variables_are_read(place):
    rank, size = place
    variables = {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank % 4),
        "MASTER_ADDR": "node0",
        "MASTER_PORT": "29500",
    }
    expected = World(rank=rank, size=size, local_rank=rank % 4, address="node0", port=29500, launcher="torchrun")
    assert torchrun_world(variables) == expected


def test_half_of_the_variables_is_no_launcher():
    assert torchrun_world({"RANK": "0"}) is None
    assert torchrun_world({"WORLD_SIZE": "2"}) is None
