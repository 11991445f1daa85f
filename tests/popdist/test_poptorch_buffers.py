"""Instances and replicas that each have their own statistics of normalisation."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.slow

MODEL = """
import torch
from torch import nn

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)

    def forward(self, x, y):
        return nn.functional.mse_loss(self.norm(self.layer(x)), y)

def data():
    generator = torch.Generator().manual_seed(4)
    return torch.randn(3, 16, 4, generator=generator), torch.randn(3, 16, 3, generator=generator)
"""
SCRIPT = (
    MODEL
    + """
import popdist.poptorch, poptorch

popdist.init()
options = popdist.poptorch.Options().runOn("cpu", tier="graph").showCompilationProgressBar(False)
torch.manual_seed(9)
network = Network()
model = poptorch.trainingModel(network, options, poptorch.optim.SGD(network.parameters(), lr=0.2))
share = slice(8 * popdist.getInstanceIndex(), 8 * popdist.getInstanceIndex() + 8)
for x, y in zip(*data()):
    model(x[share], y[share])
answer({name: tensor.tolist() for name, tensor in network.state_dict().items()})
"""
)


def expected_of(instance, scope):
    """Eager PyTorch on four parts of each batch, each with its own statistics; those of an instance's first part."""
    images, targets = scope["data"]()
    torch.manual_seed(9)
    network = scope["Network"]()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.2)
    statistics = [{name: buffer.clone() for name, buffer in network.named_buffers()} for _ in range(4)]
    for x, y in zip(images, targets, strict=True):
        optimizer.zero_grad()
        for part, own in enumerate(statistics):
            network.load_state_dict(own, strict=False)
            (network(x[4 * part : 4 * part + 4], y[4 * part : 4 * part + 4]) / 4).backward()
            own.update({name: buffer.clone() for name, buffer in network.named_buffers()})
        optimizer.step()
    return {**dict(network.named_parameters()), **statistics[2 * instance]}


def test_batch_normalisation_needs_no_option_with_instances_and_replicas(poprun):
    answers = poprun(SCRIPT, "--num-replicas=4")
    assert answers[0]["layer.weight"] == answers[1]["layer.weight"]
    assert answers[0]["norm.bias"] == answers[1]["norm.bias"]
    assert answers[0]["norm.running_mean"] != answers[1]["norm.running_mean"]
    scope: dict[str, object] = {}
    exec(MODEL, scope)
    for instance, answer in enumerate(answers):
        for name, tensor in expected_of(instance, scope).items():
            torch.testing.assert_close(torch.tensor(answer[name], dtype=tensor.dtype), tensor.detach())
