from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from pilotage.distributed.handshake import authenticate, authenticate_world, is_authenticated
from pilotage.distributed.peers import peers_here
from pilotage.errors import DistributedError

pytestmark = pytest.mark.slow


def joined(store: str):
    peers = peers_here()
    assert peers is not None
    process, processes = peers.world.process, peers.world.processes
    dist.init_process_group("gloo", store=dist.FileStore(store, processes), rank=process, world_size=processes)
    return process


def prove_with_keys(store: str, keys: list[bytes]):
    process = joined(store)
    authenticate(dist.group.WORLD)
    before = is_authenticated()
    try:
        authenticate_world(keys[process])
    except DistributedError as error:
        return before, is_authenticated(), str(error)
    group = dist.new_group([0, 1])
    authenticate(group)
    authenticate(dist.GroupMember.NON_GROUP_MEMBER)
    total = torch.ones(1)
    dist.all_reduce(total)
    return before, is_authenticated(), int(total)


def test_processes_with_the_key_of_the_job_are_accepted(world, tmp_path):
    key = bytes(32)
    for found in world(prove_with_keys, 3, store=str(tmp_path / "store"), keys=[key] * 3):
        assert found == (False, True, 3)


def test_a_process_without_the_key_is_refused_by_each_of_the_others(world, tmp_path):
    keys = [bytes(32), b"x" * 32, bytes(32)]
    answers = world(prove_with_keys, 3, store=str(tmp_path / "store"), keys=keys)
    for before, after, message in answers:
        assert (before, after) == (False, False)
        assert "does not have the key of this job" in message
    assert "process 1" in answers[0][2]
    assert "process 1" in answers[2][2]


def reflect(store: str):
    """Rank 1 echoes what it receives, as a process without the key could."""
    process = joined(store)
    if process == 0:
        try:
            authenticate_world(bytes(32))
        except DistributedError as error:
            return str(error)
    for _ in range(2):
        seen = torch.zeros(32, dtype=torch.uint8)
        dist.recv(seen, 0)
        dist.send(seen, 0)
    return ""


def test_a_challenge_is_not_answered_by_sending_it_back(world, tmp_path):
    message, _ = world(reflect, 2, store=str(tmp_path / "store"))
    assert "does not have the key" in message
