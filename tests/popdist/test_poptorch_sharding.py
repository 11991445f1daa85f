"""Replicated tensor sharding of the optimizer's state over the instances of poprun."""

from __future__ import annotations

import pytest

SCRIPT = """
import torch
from torch import nn
import popdist.poptorch, poptorch

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    def forward(self, x):
        return nn.functional.mse_loss(self.layers(x), torch.ones(len(x), 2))

def train(sharded):
    torch.manual_seed(0)
    module = Model()
    options = popdist.poptorch.Options().showCompilationProgressBar(False)
    if sharded:
        location = poptorch.TensorLocationSettings().useReplicatedTensorSharding()
        options.TensorLocations.setOptimizerLocation(location.minElementsForReplicatedTensorSharding(8))
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=0.05, max_grad_norm=0.5)
    model = poptorch.trainingModel(module, options, optimizer)
    generator = torch.Generator().manual_seed(popdist.getInstanceIndex())
    for _ in range(3):
        model(torch.randn(2, 4, generator=generator))
    held = sum(tensor.numel() for tensor in model.engine.session.optimizer_state().slots.values())
    state = optimizer.state_dict()["ipu_state"]
    weights = {name: value.tolist() for name, value in module.state_dict().items()}
    # A state that was brought together goes back to where each part of it belongs.
    optimizer.load_state_dict(optimizer.state_dict())
    model(torch.randn(2, 4, generator=generator))
    later = {name: value.tolist() for name, value in module.state_dict().items()}
    model.destroy()
    return {"weights": weights, "later": later, "state": {n: v.tolist() for n, v in state.items()}, "held": held}

answer([train(False), train(True)])
"""


@pytest.mark.slow
def test_each_instance_has_a_part_of_the_state_and_training_is_unchanged(poprun):
    answers = poprun(SCRIPT)
    for whole, shared in answers:
        assert shared["weights"] == whole["weights"] == answers[0][0]["weights"]
        assert shared["later"] == whole["later"] == answers[0][0]["later"]
        assert shared["state"] == whole["state"]
    (whole, first), (_, second) = answers
    assert first["held"] + second["held"] < 1.1 * whole["held"]
    assert max(first["held"], second["held"]) < 0.65 * whole["held"]
