"""What the door is given, checked before anything is captured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError


@pytest.fixture
def layer():
    return nn.Linear(2, 2)


@pytest.fixture
def optimizer(layer):
    return torch.optim.SGD(layer.parameters(), lr=0.1)


def test_module_and_optimizer_in_the_wrong_order_are_refused(layer, optimizer):
    with pytest.raises(OptionError, match=r"first argument must be a torch\.nn\.Module\. It is of the type SGD"):
        pilotage.training(optimizer, layer)
    with pytest.raises(OptionError, match=r"second argument must be an optimizer.*of the type Linear"):
        pilotage.training(layer, layer)


def test_a_model_that_is_wrapped_already_is_refused(layer, optimizer):
    step = pilotage.training(layer, optimizer, loss=nn.MSELoss())
    for wrap in (lambda: pilotage.training(step, optimizer), lambda: pilotage.inference(step)):
        with pytest.raises(OptionError, match=r"wrapped already. Wrap its \.module"):
            wrap()


def test_an_optimizer_that_another_library_has_wrapped_is_refused(layer, optimizer):
    class AcceleratedOptimizer(torch.optim.Optimizer):
        """As Accelerate's: a subclass that never calls the constructor of its base."""

        def __init__(self, inner):
            self.optimizer = inner

    with pytest.raises(OptionError, match=r"AcceleratedOptimizer wraps the optimizer.*accelerator\.prepare\(\)"):
        pilotage.training(layer, AcceleratedOptimizer(optimizer))
    with pytest.raises(OptionError, match=r"must be an optimizer.*SimpleNamespace"):
        pilotage.training(layer, SimpleNamespace(param_groups=optimizer.param_groups))


def test_a_loss_that_cannot_be_called_is_refused(layer, optimizer):
    with pytest.raises(OptionError, match=r"loss= is 'cross_entropy'\. Give it a function"):
        pilotage.training(layer, optimizer, loss="cross_entropy")
