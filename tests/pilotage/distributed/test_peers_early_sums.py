"""Gradients that are exchanged during backward equal those of one process."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.distributed.peers import peers_here

pytestmark = pytest.mark.slow

WIDTH = 400
BATCH = 4


def train(accumulation: int):
    peers = peers_here()
    rank, size = (0, 1) if peers is None else (peers.world.rank, peers.world.size)
    torch.manual_seed(3)
    layers = [layer for _ in range(5) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = pilotage.training(
        model,
        optimizer,
        loss=nn.CrossEntropyLoss(),
        gradient_accumulation=accumulation,
        tier="graph",
        backend="cpu",
        distributed=True,
    )
    generator = torch.Generator().manual_seed(7)
    for _ in range(3):
        whole = torch.randn(8 * BATCH, WIDTH, generator=generator), torch.randint(3, (8 * BATCH,), generator=generator)
        step(*(part.chunk(size)[rank] for part in whole))
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("accumulation", [1, 2])
def test_two_instances_reach_the_weights_of_one_process(world, accumulation):
    reference = train(2 * accumulation)
    for state in world(train, 2, accumulation=accumulation):
        for name, expected in reference.items():
            torch.testing.assert_close(state[name], expected, rtol=1e-5, atol=1e-6)
