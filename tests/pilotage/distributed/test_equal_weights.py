from __future__ import annotations

import pytest
import torch

from pilotage.distributed.equal_weights import equalize_weights
from pilotage.distributed.peers import peers_here
from pilotage.errors import DistributedError

pytestmark = pytest.mark.slow


def settle_different_weights():
    peers = peers_here()
    torch.manual_seed(peers.world.rank)
    tensors = {
        "same": torch.arange(3),
        "weight": torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        "half": torch.randn(5).to(torch.bfloat16),
        "scalar": torch.tensor(float(peers.world.rank)),
        "flag": torch.tensor([True]),
        "empty": torch.empty(0),
    }
    first, strides = equalize_weights(peers, tensors), tensors["weight"].stride()
    return first, equalize_weights(peers, tensors), tensors, strides


def test_differing_instances_take_the_weights_of_the_first(world):
    (first, again, tensors, strides), (_, _, others, _) = world(settle_different_weights, 2)
    assert first == ["weight", "half", "scalar"]
    assert again == []
    assert all(torch.equal(tensors[name], others[name]) for name in tensors)
    assert tensors["scalar"] == 0
    assert strides == (48, 1, 12, 3)


def settle_statistics(weights_differ: bool):
    peers = peers_here()
    tensors = {
        "weight": torch.ones(3) * (peers.world.rank if weights_differ else 1),
        "running_mean": torch.tensor([float(peers.world.rank)]),
    }
    return equalize_weights(peers, tensors, own=["running_mean"]), tensors["running_mean"].item()


def test_own_statistics_are_kept_if_nothing_else_differs(world):
    assert world(settle_statistics, 2, weights_differ=False) == [([], 0.0), ([], 1.0)]
    assert world(settle_statistics, 2, weights_differ=True) == [(["weight", "running_mean"], 0.0)] * 2


def settle_another_model():
    peers = peers_here()
    try:
        equalize_weights(peers, {"weight": torch.ones(2 + peers.world.rank)})
    except DistributedError as error:
        return str(error)


def test_another_model_is_refused_everywhere_with_the_tensor_that_differs(world):
    for message in world(settle_another_model, 2):
        assert "Rank 1 trains another model than rank 0" in message
        assert "weight is ((3,), 'torch.float32'), not ((2,), 'torch.float32')" in message
