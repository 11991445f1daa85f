"""The snapshot of a module that is executed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from poptorch._executor.snapshot import snapshot


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(1))
        self.scale = 2.0
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * self.scale


def test_a_snapshot_shares_weights_submodules_and_hooks_but_not_attributes():
    module = Scaled()
    twin = snapshot(module)
    assert type(twin) is Scaled
    assert twin.layer is module.layer
    assert twin.seen is module.seen
    module.register_buffer("later", torch.ones(1))
    assert twin.later is module.later
    module.scale = 3.0
    twin.training = False
    assert (twin.scale, module.training) == (2.0, True)


@pytest.mark.parametrize("make", [nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.orthogonal])
def test_modules_that_cannot_be_copied_have_a_snapshot_too(make):
    module = make(nn.Linear(2, 2))
    x = torch.ones(1, 2)
    assert torch.equal(snapshot(module)(x), module(x))


def test_attributes_have_the_values_of_the_time_of_wrapping():
    module = Scaled()
    model = poptorch.inferenceModel(module)
    module.scale = 0.0
    assert torch.equal(model(torch.ones(1, 2)), (module.layer(torch.ones(1, 2)) * 2.0).detach())
    assert model.scale == 0.0


def test_the_mode_is_that_of_the_time_of_wrapping():
    module = nn.Sequential(nn.Dropout(1.0)).eval()
    model = poptorch.inferenceModel(module)
    module.train()
    assert model(torch.ones(2)).tolist() == [1.0, 1.0]
    assert poptorch.inferenceModel(module)(torch.ones(2)).tolist() == [0.0, 0.0]


def test_compiling_does_not_change_the_users_module(caplog):
    module = Scaled()
    model = poptorch.inferenceModel(module)
    for _ in range(3):
        model(torch.ones(1, 2))
    assert module.calls == 0
    assert vars(module).keys() == vars(Scaled()).keys()
