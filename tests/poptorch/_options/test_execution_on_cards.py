"""PopTorch's replicas and blocks on several cards of one process."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x, target=None):
        hidden = functional.dropout(self.first(x).tanh(), 0.2, self.training)
        output = self.last(hidden)
        return output if target is None else (output, functional.cross_entropy(output, target))


class Blocks(Net):
    def forward(self, x, target=None):
        with poptorch.Block("first", ipu_id=0):
            hidden = self.first(x).tanh()
        with poptorch.Block("last", ipu_id=1):
            output = self.last(hidden)
            return output if target is None else (output, functional.cross_entropy(output, target))


def trained(kind, replicas):
    torch.manual_seed(1)
    module = kind()
    options = (
        poptorch.Options().replicationFactor(replicas).deviceIterations(2).randomSeed(4).runOn("cpu", tier="graph")
    )
    options.Training.gradientAccumulation(4)
    options.outputMode(poptorch.OutputMode.All)
    model = poptorch.trainingModel(module, options, poptorch.optim.Adam(module.parameters(), lr=0.02))
    generator = torch.Generator().manual_seed(5)
    results = []
    for _ in range(3):
        count = 8 * replicas * 3
        batch = torch.randn(count, 6, generator=generator), torch.randint(4, (count,), generator=generator)
        results.append(model(*batch))
    return results, module.state_dict(), type(model.engine.session.strategy).__name__


@pytest.mark.parametrize(("kind", "replicas", "shared"), [(Net, 4, "ReplicasOnCards"), (Blocks, 1, "Pipeline")])
def test_several_cards_reach_the_same_result_as_one(kind, replicas, shared, monkeypatch):
    *expected, _ = trained(kind, replicas)
    monkeypatch.setenv("PILOTAGE_CARDS", "cpu,cpu")
    *found, strategy = trained(kind, replicas)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert strategy == shared
