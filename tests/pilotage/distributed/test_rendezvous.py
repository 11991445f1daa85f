from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch.distributed as dist

from pilotage.distributed.handshake import is_authenticated
from pilotage.distributed.job_directory import JobDirectory
from pilotage.distributed.peers import Peers, leave, peers_here
from pilotage.distributed.rendezvous import join_world
from pilotage.distributed.values import broadcast_value, gather_values
from pilotage.distributed.world import World
from pilotage.errors import DistributedError

pytestmark = pytest.mark.slow


def listening() -> list[tuple[str, int]]:
    """Where this process listens: addresses in the kernel's format, and ports."""
    own = {os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            local, _, state, *rest = line.split()[1:]
            if state == "0A" and f"socket:[{rest[5]}]" in own:
                address, port = local.split(":")
                found.append((address, int(port, 16)))
    return found


def look_around():
    peers = peers_here()
    assert peers is not None
    peers.join()
    return listening(), peers.world.port, is_authenticated(), type(dist.distributed_c10d._get_default_store()).__name__


def test_on_one_host_only_gloo_listens_on_loopback_and_members_are_authenticated(world):
    for places, port, proved, store in world(look_around, 2):
        assert places
        assert {address for address, _ in places} == {"0100007F"}
        assert port not in [found for _, found in places]
        assert proved
        assert "TCP" not in store


def meet_again():
    peers = peers_here()
    assert peers is not None
    found = []
    for number in range(3):
        found.append(peers.gather((number, peers.world.rank)))
        leave()
    return found


def test_processes_can_leave_and_meet_again(world):
    for found in world(meet_again, 2):
        assert found == [[(number, 0), (number, 1)] for number in range(3)]


def use_a_group_of_the_script(directory: str):
    peers = peers_here()
    assert peers is not None
    world = peers.world
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{world.port}", rank=world.rank, world_size=world.size)
    known = World(rank=world.rank, size=world.size, one_host=True, directory=directory)
    return Peers(world=known).gather(world.rank), is_authenticated()


def test_a_group_created_by_the_script_is_authenticated_too(world, tmp_path):
    with JobDirectory.make() as made:
        assert world(use_a_group_of_the_script, 2, directory=str(made.path)) == [([0, 1], True)] * 2


def join_alone():
    join_world(World())
    return dist.get_world_size(), gather_values("x"), broadcast_value("y")


def test_a_single_process_is_a_group_of_one(world):
    assert world(join_alone, 1) == [(1, ["x"], "y")]


def test_a_directory_of_another_user_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(DistributedError, match="not a private directory of a job"):
        join_world(World(size=2, one_host=True, directory=str(tmp_path)))
    assert not dist.is_initialized()
