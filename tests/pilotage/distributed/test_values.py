from __future__ import annotations

import os
import pickle

import pytest
import torch
import torch.distributed as dist

from pilotage.distributed.peers import peers_here
from pilotage.distributed.values import broadcast_value, gather_values
from pilotage.errors import DistributedError

pytestmark = pytest.mark.slow


def exchange_values():
    peers = peers_here()
    assert peers is not None
    peers.join()
    rank = peers.world.rank
    gathered = gather_values({"rank": rank, ("a", 1): torch.full((rank,), rank), "text": "x" * 10 * rank})
    told = broadcast_value([rank, torch.arange(3)] if rank == 1 else None, source=1)
    largest = gather_values(torch.zeros(1 << 20) if rank == 0 else None)
    return gathered, told, [None if each is None else each.numel() for each in largest]


def test_values_of_different_sizes_arrive_everywhere(world):
    for gathered, told, sizes in world(exchange_values, 3):
        assert [each["rank"] for each in gathered] == [0, 1, 2]
        assert [each["a", 1].tolist() for each in gathered] == [[], [1], [2, 2]]
        assert [len(each["text"]) for each in gathered] == [0, 10, 20]
        assert told[0] == 1
        assert told[1].tolist() == [0, 1, 2]
        assert sizes == [1 << 20, None, None]


class Evil:
    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def send_a_pickle(marker: str, length: int | None):
    peers = peers_here()
    assert peers is not None
    peers.join()
    if peers.world.rank == 0:
        try:
            return peers.gather("plain")
        except DistributedError as error:
            return str(error)
    # What torch's own all_gather_object would send.
    data = torch.frombuffer(bytearray(pickle.dumps(Evil(marker))), dtype=torch.uint8)
    size = torch.tensor([data.numel() if length is None else length])
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
    dist.all_gather(sizes, size)
    if length is None:
        padded = torch.zeros(int(max(sizes)), dtype=torch.uint8)
        padded[: data.numel()] = data
        dist.all_gather([torch.empty_like(padded) for _ in range(2)], padded)
    return None


@pytest.mark.parametrize(("length", "message"), [(None, "cannot be read"), (1 << 60, "At most"), (-1, "At most")])
def test_a_peer_that_sends_a_pickle_or_a_wrong_length_is_refused_and_nothing_runs(world, tmp_path, length, message):
    marker = tmp_path / "executed"
    found, _ = world(send_a_pickle, 2, marker=str(marker), length=length)
    assert message in found
    assert not marker.exists()


def send_objects_of_their_own(marker: str):
    peers = peers_here()
    assert peers is not None
    with pytest.raises(DistributedError, match=r"Evil cannot be sent to other processes"):
        peers.gather(Evil(marker))


def test_objects_that_are_not_plain_are_refused_by_the_sender(world, tmp_path):
    world(send_objects_of_their_own, 2, marker=str(tmp_path / "executed"))
    assert not (tmp_path / "executed").exists()
