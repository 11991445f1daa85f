from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.world import World
from pilotage.errors import OptionError


@given(size=st.integers(1, 64), replicas=st.integers(1, 8))
def test_replicas_are_numbered_consecutively_over_all_instances(size, replicas):
    worlds = [World(rank=rank, size=size, replicas_per_instance=replicas) for rank in range(size)]
    numbers = [world.first_replica + replica for world in worlds for replica in range(replicas)]
    assert numbers == list(range(worlds[0].replicas))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rank": 2, "size": 2}, "between 0 and 1"),
        ({"rank": -1}, "between 0 and 0"),
        ({"size": 0}, r"size is 0\. It must be at least 1"),
        ({"size": 0, "launcher": "slurm"}, r"size is 0 \(set by slurm\)\. It must be at least 1"),
        ({"replicas_per_instance": 0}, "replicas_per_instance is 0"),
        ({"stages_per_replica": 0}, "stages_per_replica is 0"),
        ({"stages_per_replica": 2, "stage": 2}, r"stage is 2\. It must be between 0 and 1"),
        ({"local_rank": -1}, "local rank is -1"),
        ({"port": 70000}, "port is 70000"),
    ],
)
def test_an_invalid_world_is_refused(fields, message):
    with pytest.raises(OptionError, match=message):
        World(**fields)
