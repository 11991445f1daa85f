from __future__ import annotations

import os
import signal
import socket
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from pilotage.distributed.peers import Peers, leave, peers_here
from pilotage.distributed.world import World
from pilotage.errors import DistributedError

pytestmark = pytest.mark.slow


def here(**settings) -> Peers:
    peers = peers_here(**settings)
    assert peers is not None
    return peers


def exchange_everything():
    peers = here()
    rank = peers.world.rank
    before = dist.is_initialized()
    total = torch.full((3,), rank + 1.0)
    peers.sum(total)
    largest = torch.tensor([rank])
    peers.reduce(largest, dist.ReduceOp.MAX)
    heard = [torch.full((2, 2), float(rank)), torch.full((4,), rank).t()]
    peers.broadcast(heard, source=1)
    peers.wait_for_all()
    gathered = peers.gather({"rank": rank})
    first = peers.value_of_first({"code": bytes([rank])})
    leave()
    return before, total, largest, heard, gathered, first, dist.is_initialized()


def test_everything_that_is_exchanged_arrives_everywhere(world):
    for before, total, largest, heard, gathered, first, after in world(exchange_everything, 2):
        assert (before, after) == (False, False)
        assert total.tolist() == [3.0] * 3
        assert largest.tolist() == [1]
        assert [tensor.flatten()[0].item() for tensor in heard] == [1, 1]
        assert gathered == [{"rank": 0}, {"rank": 1}]
        assert first == {"code": b"\0"}


def broadcast_strides():
    peers = here()
    tensor = torch.arange(12.0).reshape(3, 4).t() * (1 - peers.world.rank)
    peers.broadcast([tensor])
    return tensor


def test_tensors_in_any_layout_are_broadcast(world):
    first, second = world(broadcast_strides, 2)
    assert torch.equal(first, second)
    assert torch.equal(first, torch.arange(12.0).reshape(3, 4).t())


def die_in_the_middle():
    peers = here(timeout=timedelta(seconds=60))
    peers.sum(torch.ones(2))
    if peers.world.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        peers.sum(torch.ones(2))
    except DistributedError as error:
        return str(error)


def test_a_dead_peer_is_noticed_at_once_and_the_error_says_what_to_do(instances):
    begun = instances()
    begun.start(die_in_the_middle, 2)
    assert begun.statuses(20) == [0, -signal.SIGKILL]
    message = torch.load(begun.answer(0))
    assert "Rank 0 of 2" in message
    assert "another instance is gone" in message


def stay_silent():
    os.environ["PILOTAGE_EXCHANGE_TIMEOUT"] = "1"
    peers = here()
    pids = peers.gather(os.getpid())
    if peers.world.rank == 1:
        signal.pause()
    try:
        peers.sum(torch.ones(2))
    except DistributedError as error:
        if peers.world.rank == 0:
            os.kill(pids[1], signal.SIGTERM)
        return str(error)


@pytest.mark.parametrize("size", [2, 3])
def test_a_silent_peer_is_named_after_the_timeout(instances, size):
    begun = instances()
    begun.start(stay_silent, size)
    assert begun.statuses(60) == [0, -signal.SIGTERM, 0][:size]
    message = torch.load(begun.answer(0))
    assert f"Rank 0 of {size}" in message
    assert "failed in adding up: rank 1 did not take part" in message


def compile_for_long():
    peers = here(timeout=timedelta(seconds=1))
    peers.join()
    if peers.world.rank == 1:
        signal.sigtimedwait([], 1.5)
    peers.wait_for_all()
    return True


def test_a_compiling_peer_is_waited_for_beyond_the_timeout(world):
    assert world(compile_for_long, 2) == [True, True]


def test_without_a_rendezvous_address_the_error_says_which_variables_to_set():
    with pytest.raises(DistributedError, match=r"rank 1 of 2 \(set by OpenMPI\).*MASTER_ADDR.*MASTER_PORT.*poprun"):
        Peers(world=World(rank=1, size=2, launcher="OpenMPI")).join()


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        peers = Peers(world=World(size=2, address="127.0.0.1", port=port), timeout=timedelta(seconds=5))
        with pytest.raises(DistributedError, match=rf"127\.0\.0\.1:{port}: the port is in use"):
            peers.join()


def test_a_process_without_a_launcher_has_no_peers(monkeypatch):
    for name in ("POPDIST_NUM_TOTAL_REPLICAS", "RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    assert peers_here() is None
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "1")
    assert peers_here() is None
    leave()


def join_a_group_of_another_size():
    peers = here()
    wrong = Peers(world=World(rank=0, size=3, address="127.0.0.1", port=1))
    peers.join()
    try:
        wrong.join()
    except DistributedError as error:
        return str(error)


def test_a_group_that_does_not_fit_the_launcher_is_refused(world):
    for rank, message in enumerate(world(join_a_group_of_another_size, 2)):
        assert f"rank {rank} of 2" in message
        assert "rank 0 of 3" in message


def test_a_card_is_waited_for_until_it_is_done():
    left = [False, False, True]
    Peers(world=World(one_host=True)).wait_for_card(lambda: left.pop(0), 1.0)
    assert not left


def test_a_card_that_waits_for_a_silent_peer_ends_in_an_error():
    peers = Peers(world=World(rank=1, size=2), timeout=timedelta(seconds=0.1))
    with pytest.raises(DistributedError, match=r"Rank 1 of 2.*failed in adding up: another instance is silent"):
        peers.wait_for_card(lambda: False, 0.1)


def test_sums_of_the_processor_are_not_made_by_a_card():
    assert not Peers(world=World(one_host=True)).sums_on_card(torch.ones(2))
