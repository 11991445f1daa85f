from __future__ import annotations

import torch
from torch import nn

import poptorch


class Seeding(nn.Module):
    def forward(self, x):
        torch.manual_seed(42)
        return x + torch.rand(3)


def test_a_seed_set_in_forward_seeds_the_host_once(tier):
    torch.manual_seed(7)
    model = poptorch.inferenceModel(Seeding(), poptorch.Options().runOn("cpu", tier=tier))
    before = torch.manual_seed
    first, second = model(torch.zeros(3)), model(torch.zeros(3))
    assert not torch.equal(first, second)
    assert torch.manual_seed is before


def test_the_devices_own_generator_is_not_affected():
    drawn = []
    for seed in (1, 1, 2):
        model = poptorch.inferenceModel(Seeding(), poptorch.Options().randomSeed(seed))
        drawn.append([model(torch.zeros(3)) for _ in range(2)])
        assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(42))
    assert all(map(torch.equal, drawn[0], drawn[1]))
    assert not torch.equal(drawn[0][0], drawn[2][0])
