"""Instances that are pipelines over their own cards reach the weights of one process on one card."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import peers_here

pytestmark = pytest.mark.slow


class Staged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = functional.dropout(self.first(x).tanh(), 0.2)
        pilotage.enter_stage(1)
        output = self.last(hidden)
        return output, functional.cross_entropy(output, target)


def train(*, instances: int, replicas: int, cards: int):
    peers = peers_here()
    instance = 0 if peers is None else peers.world.rank
    # The weights differ at first, and the second instance takes those of the first.
    torch.manual_seed(1 + instance)
    module = Staged()
    step = pilotage.training(
        module,
        torch.optim.Adam(module.parameters(), lr=0.02),
        distributed=True,
        backend="cpu",
        cards=["cpu"] * cards,
        tier="graph",
        replicas=replicas,
        gradient_accumulation=2,
        seed=7,
    )
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        images = torch.randn(2, instances, 2 // instances, 3, 6, generator=generator)
        targets = torch.randint(4, (2, instances, 2 // instances, 3), generator=generator)
        step(images[:, instance].flatten(0, 2), targets[:, instance].flatten())
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_two_instances_with_two_stages_each_reach_the_weights_of_one_process_on_one_card(world):
    expected = train(instances=1, replicas=2, cards=1)
    for weights in world(train, 2, instances=2, replicas=1, cards=2):
        torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)
