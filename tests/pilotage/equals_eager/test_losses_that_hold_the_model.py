"""Losses that refer to the model from outside of it: the program is right, and eager PyTorch agrees."""

import functools
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.events import Checked

INPUTS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
TARGETS = torch.arange(12) % 3


def penalised(scores, labels, parameters):
    return functional.cross_entropy(scores, labels) + 0.05 * sum(each.square().sum() for each in parameters)


def closure(model):
    return lambda scores, labels: penalised(scores, labels, model.parameters())


def closure_over_tensors(model):
    kept = list(model.parameters())
    return lambda scores, labels: penalised(scores, labels, kept)


def default_argument(model):
    def loss(scores, labels, model=model):
        return penalised(scores, labels, model.parameters())

    return loss


def partial_of_a_model(model):
    return functools.partial(lambda kept, scores, labels: penalised(scores, labels, kept.parameters()), model)


def partial_of_tensors(model):
    return functools.partial(
        lambda kept, scores, labels: penalised(scores, labels, kept.values()), dict(model.named_parameters())
    )


def global_name(model):
    GLOBAL["model"] = model
    return loss_of_the_global_model


GLOBAL = {}


def loss_of_the_global_model(scores, labels):
    return penalised(scores, labels, GLOBAL["model"].parameters())


class Trainer:
    def __init__(self, model):
        self.model = model
        self.calls = 0

    def loss(self, scores, labels):
        self.calls += 1
        return penalised(scores, labels, self.model.parameters())


def bound_method(model):
    return Trainer(model).loss


def bound_method_of_what_cannot_be_copied(model):
    trainer = Trainer(model)
    trainer.lock = threading.Lock()
    return trainer.loss


class Criterion(nn.Module):
    def __init__(self, model, *, registered):
        super().__init__()
        self.model = model if registered else [model]

    def forward(self, scores, labels):
        model = self.model[0] if isinstance(self.model, list) else self.model
        return penalised(scores, labels, model.parameters())


def module_that_holds_the_model(model):
    return Criterion(model, registered=True)


def module_that_hides_the_model(model):
    return Criterion(model, registered=False)


def larger_system(model):
    system = nn.ModuleDict({"network": model})
    return lambda scores, labels: penalised(scores, labels, system.parameters())


def part_called_again(model):
    return lambda scores, labels: (
        functional.cross_entropy(scores, labels)
        + model[2](torch.ones(2, 5)).square().mean()
        + model[1].running_mean.sum()
    )


@pytest.mark.parametrize(
    "criterion",
    [
        closure,
        closure_over_tensors,
        default_argument,
        partial_of_a_model,
        partial_of_tensors,
        global_name,
        bound_method,
        bound_method_of_what_cannot_be_copied,
        module_that_holds_the_model,
        module_that_hides_the_model,
        larger_system,
        part_called_again,
    ],
)
def test_the_program_trains_as_eager_pytorch_does_and_the_check_agrees(twins, assert_same_state, criterion):
    mine, theirs = twins(lambda: nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)))
    checks = []
    step = pilotage.training(
        mine,
        torch.optim.SGD(mine.parameters(), lr=0.1, momentum=0.9),
        loss=criterion(mine),
        tier="graph",
        check=2,
        listeners=[lambda event: checks.append(event.agrees) if isinstance(event, Checked) else None],
    )
    found = [step(INPUTS, TARGETS)[1] for _ in range(3)]
    loss, plain = criterion(theirs), torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    expected = []
    for _ in range(3):
        plain.zero_grad()
        expected.append(loss(theirs(INPUTS), TARGETS))
        expected[-1].backward()
        plain.step()
    torch.testing.assert_close(torch.stack(found), torch.stack(expected).detach())
    assert_same_state(mine, theirs, 1e-6)
    assert checks == [True, True]


class Penalty:
    """Its values are not followed when they change."""

    __slots__ = ("strength",)

    def __init__(self):
        self.strength = 0.0


def test_a_penalty_that_the_program_forgets_is_caught():
    """The reference sees the weights that it trains, so that a program without them differs."""
    from pilotage.errors import MismatchError

    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3))
    kept, penalty = list(model.parameters()), Penalty()

    def loss(scores, labels):
        return functional.cross_entropy(scores, labels) + penalty.strength * sum(each.square().sum() for each in kept)

    step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=loss, tier="graph")
    step.compile(INPUTS, TARGETS)
    penalty.strength = 0.5
    with pytest.raises(MismatchError, match="differ by more than rounding"):
        step(INPUTS, TARGETS)
