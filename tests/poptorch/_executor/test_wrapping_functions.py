"""Functions that are wrapped like modules."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from poptorch._executor.wrapping import FunctionModule


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(2, 2)

    def forward(self, x, y):
        return functional.mse_loss(self.layer(x), y)

    def encode(self, x):
        return self.layer(x)


class Caller:
    def __init__(self, network):
        self.network = network

    def __call__(self, x):
        return self.network.encode(x)


everywhere = Network()


def by_global(network):
    def encode(x):
        return everywhere.encode(x)

    return encode


def by_default(network):
    def encode(x, used=network):
        return used.encode(x)

    return encode


WAYS = {
    "a method": lambda network: network.encode,
    "the forward of a part": lambda network: network.layer.forward,
    "a closure": lambda network: lambda x: network.encode(x),
    "a list in a closure": lambda network: (lambda networks: lambda x: networks[0].encode(x))([network]),
    "a dictionary in a closure": lambda network: (lambda table: lambda x: table["a"].encode(x))({"a": network}),
    "a global": by_global,
    "a default": by_default,
    "a partial function": lambda network: functools.partial(lambda used, x: used.encode(x), network),
    "an object": Caller,
}
X, Y = torch.ones(1, 2), torch.zeros(1, 2)


@pytest.mark.parametrize("way", WAYS)
def test_modules_used_by_a_function_are_submodules(way):
    network = everywhere if way == "a global" else Network()
    model = poptorch.inferenceModel(WAYS[way](network))
    before = model(X)
    assert torch.equal(before, network.encode(X).detach())
    trainer = poptorch.trainingModel(network)
    trainer(X, Y)
    after = model(X)
    assert not torch.equal(after, before)
    assert torch.equal(after, network.encode(X).detach())


@pytest.mark.parametrize("way", WAYS)
def test_weights_of_modules_used_by_a_function_are_state(way):
    network = everywhere if way == "a global" else Network()
    assert len(list(FunctionModule(WAYS[way](network)).parameters())) == 2


@pytest.mark.parametrize("function", [torch.relu, functional.relu, lambda x: x + 1, nn.ReLU().forward])
def test_functions_that_use_no_weights_have_none(function):
    assert not list(FunctionModule(function).parameters())


def test_the_modes_of_the_modules_do_not_change():
    network = Network().eval()
    FunctionModule(network.encode)
    assert not network.training
    assert not network.layer.training


def test_a_function_with_an_unset_closure_variable_can_be_wrapped():
    def forward(x):
        return x + later

    model = FunctionModule(forward)
    later = 2
    assert model(torch.ones(1)).item() == 3.0


def test_torchs_own_functions_can_be_wrapped():
    x = torch.tensor([1.0, 4.0])
    assert torch.equal(poptorch.inferenceModel(torch.log)(x), torch.log(x))
    assert torch.equal(poptorch.inferenceModel(torch.add)(x, x, alpha=2), torch.add(x, x, alpha=2))
