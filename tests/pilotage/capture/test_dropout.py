"""Warnings about dropout in inference because the module is still in training mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage

X = torch.ones(4, 8)


class Functional(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(8, 8), function

    def forward(self, x):
        return self.function(self.layer(x), self.training)


def attention(x, training):
    return functional.scaled_dot_product_attention(*[x.reshape(1, 4, 8)] * 3, dropout_p=0.2 if training else 0.0)


ACTIVE = {
    "a layer": lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)),
    "an alpha layer": lambda: nn.Sequential(nn.Linear(8, 8), nn.AlphaDropout(0.1)),
    "a whole layer": lambda: nn.Dropout(1.0),
    "a transformer": lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True),
    "a recurrent layer": lambda: nn.LSTM(8, 4, 2, dropout=0.3),
    "a function": lambda: Functional(lambda x, training: functional.dropout(x, 0.3, training)),
    "a function of channels": lambda: Functional(lambda x, training: functional.dropout1d(x, 0.3, training)),
    "attention": lambda: Functional(attention),
}


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.dropout = nn.Linear(8, 8), nn.Dropout(0.5)

    def forward(self, x):
        return self.layer(x)


QUIET = {
    "no dropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)),
    "a share of zero": lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.0)),
    "a layer that forward does not use": Unused,
    "noise that is part of the model": lambda: Functional(lambda x, training: x + torch.randn_like(x)),
    "one recurrent layer": lambda: nn.LSTM(8, 4, 1),
    "a wrapper around an evaluated module": lambda: nn.Sequential(ACTIVE["a layer"]().eval()),
}


def warnings_of(module, warned, **options):
    pilotage.inference(module, listeners=[warned], **options)(X)
    return [message for message in warned.messages if "training mode" in message]


@pytest.mark.parametrize("name", ACTIVE)
def test_active_dropout_is_reported_with_the_remedy(name, warned):
    (warning,) = warnings_of(ACTIVE[name](), warned, tier="graph")
    assert "Call .eval()" in warning


@pytest.mark.parametrize("name", ACTIVE)
def test_the_remedy_works(name, warned):
    assert not warnings_of(ACTIVE[name]().eval(), warned, tier="graph")


@pytest.mark.parametrize("name", QUIET)
def test_inactive_dropout_is_not_reported(name, warned):
    assert not warnings_of(QUIET[name](), warned, tier="graph")


def test_the_layers_are_named(warned):
    (warning,) = warnings_of(nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Dropout(0.1))), warned, tier="eager")
    assert "(in 1.0)" in warning


def test_dropout_left_on_in_an_evaluated_module_is_deliberate(warned):
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).eval()
    module[1].train()
    assert not warnings_of(module, warned, tier="graph")


def test_training_with_dropout_is_not_reported(warned):
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    pilotage.training(module, optimizer, loss=nn.MSELoss(), listeners=[warned], tier="graph")(X, X)
    assert not [message for message in warned.messages if "training mode" in message]
