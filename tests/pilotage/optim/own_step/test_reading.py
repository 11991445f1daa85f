"""Which optimizers can become part of a program by their own step(), and what the others are told."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError


class Written(torch.optim.Optimizer):
    """An optimizer to write a step() for."""

    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, {"lr": lr, "calls": 0})

    def updated(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-group["lr"])


class LooksAtTheLoss(Written):
    @torch.no_grad()
    def step(self, closure=None):
        if self.param_groups[0]["params"][0].grad.norm() > 1:
            self.updated()


class CountsInItsGroup(Written):
    def step(self, closure=None):
        self.param_groups[0]["calls"] += 1
        self.updated()


class CountsInItself(Written):
    calls = 0

    def step(self, closure=None):
        self.calls += 1
        self.updated()


class KeepsTheWeights(Written):
    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["slow"] = p.clone()
            p.add_(p.grad, alpha=-self.param_groups[0]["lr"])
            state["slow"].lerp_(p, 0.5)
            p.copy_(state["slow"])


class KeepsWords(Written):
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            self.state[p]["name"] = "weight"
        self.updated()


class NeedsAClosure(Written):
    def step(self, closure):
        closure()
        self.updated()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (torch.optim.LBFGS, "runs the model several times"),
        (lambda p: torch.optim.SparseAdam(list(p)), "takes sparse gradients"),
        (LooksAtTheLoss, r"step\(\) at .*test_reading.py:\d+ needs numbers"),
        (CountsInItsGroup, r"changes param_groups\[…\]\['calls'\]"),
        (CountsInItself, "changes calls"),
        (KeepsTheWeights, "starts from the weights themselves"),
        (KeepsWords, "keeps a str as 'name'"),
        (NeedsAClosure, r"step\(\) needs closure"),
    ],
)
def test_what_cannot_be_captured_is_refused_when_the_model_is_wrapped(kind, reason):
    model = nn.Linear(2, 2)
    with pytest.raises(OptionError, match=rf"cannot become part of a program: .*{reason}"):
        pilotage.training(model, kind(model.parameters()), loss=nn.MSELoss())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_reading_leaves_the_optimizer_as_it_is():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.RAdam(model.parameters())
    before = {name: id(value) for name, value in vars(optimizer).items()}
    pilotage.training(model, optimizer, loss=nn.MSELoss())
    assert not optimizer.state
    assert {name: id(value) for name, value in vars(optimizer).items()} == before
    assert "min" not in vars(torch.optim.radam if hasattr(torch.optim, "radam") else torch.optim)


def test_only_other_settings_than_the_learning_rate_need_another_capture():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.NAdam(model.parameters())
    step = pilotage.training(model, optimizer, loss=nn.MSELoss(), tier="graph", backend="cpu")
    step(torch.ones(2, 2), torch.ones(2, 2))
    optimizer.param_groups[0]["lr"] = 0.5
    step(torch.ones(2, 2), torch.ones(2, 2))
    assert step.record.compilations == 1
    optimizer.param_groups[0]["momentum_decay"] = 0.5
    step(torch.ones(2, 2), torch.ones(2, 2))
    assert step.record.compilations == 2
