"""Programs that replace `copyWeightsToHost` in order to count the copies that reading causes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import poptorch

X, Y = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(4, 2)


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, y):
        out = self.layer(x)
        return out, nn.functional.mse_loss(out, y)


@pytest.fixture
def counting():
    """A module, its training model, and the copies so far."""
    module, copies = Trained(), []
    model = poptorch.trainingModel(module)
    copy_weights = model.copyWeightsToHost
    model.copyWeightsToHost = lambda: (copies.append(1), copy_weights())
    return module, model, copies


@pytest.mark.parametrize(
    "read",
    [
        lambda module: list(module.parameters()),
        lambda module: list(module.layer.named_parameters()),
        lambda module: module.layer._parameters.values(),
        copy.deepcopy,
    ],
    ids=["parameters", "of a part", "table", "copy"],
)
def test_going_through_the_parameters_copies_once_after_each_training(read, counting):
    module, model, copies = counting
    for _ in range(2):
        for _ in range(2):
            model(X, Y)
        assert copies == []
        for _ in range(2):
            read(module)
        assert copies == [1]
        copies.clear()


def test_copies_of_a_watched_module_are_plain(counting, tmp_path):
    module, model, _ = counting
    model(X, Y)
    twin = copy.deepcopy(module)
    assert type(twin.layer._parameters) is dict
    assert torch.equal(twin.layer.weight, module.layer.weight)
    torch.save(module, tmp_path / "module.pt")
    loaded = torch.load(tmp_path / "module.pt", weights_only=False)
    assert type(loaded.layer._parameters) is dict
    assert torch.equal(loaded.layer.weight, module.layer.weight)


def test_the_methods_own_form_can_be_restored(counting):
    module, model, copies = counting
    model(X, Y)
    before = module.layer.weight.detach().clone()
    copies.clear()
    del model.copyWeightsToHost
    assert type(module.layer._parameters) is dict
    model(X, Y)
    assert not torch.equal(module.layer.weight, before)
    assert copies == []
