"""Optimizers whose own step() is captured, against the same optimizers in eager PyTorch."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

import pilotage
from pilotage.optim.reading import has_rule
from pilotage.optim.sgd import SGD


class SignMomentum(torch.optim.Optimizer):
    """Lion, as its authors published it."""

    def __init__(self, parameters, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                update = state["exp_avg"].clone().mul_(beta1).add(p.grad, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(p.grad, alpha=1 - beta2)


class CountingAdam(torch.optim.Optimizer):
    """Adam as it used to be written: with a number that counts, the module math, and tensors that are replaced."""

    def __init__(self, parameters, lr=0.02, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})

    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "step" not in state:
                    state.update(step=0, mean=torch.zeros_like(p.data), square=torch.zeros_like(p.data))
                state["step"] += 1
                state["mean"] = beta1 * state["mean"] + (1 - beta1) * p.grad
                state["square"] = state["square"].mul(beta2).addcmul(p.grad, p.grad, value=1 - beta2)
                denominator = (state["square"].sqrt() / math.sqrt(1 - beta2 ** state["step"])).add_(group["eps"])
                rate = max(group["lr"], 1e-6) / (1 - math.pow(beta1, state["step"]))
                p.data.addcdiv_(state["mean"], denominator, value=-rate)


class DecayingSgd(torch.optim.SGD):
    """A subclass that does something else before each step of its base."""

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(0.99)
        return super().step(closure)


OPTIMIZERS = {
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.05),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.02, weight_decay=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1, t0=2),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.02),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.02, weight_decay=0.01, decoupled_weight_decay=True),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "Muon": lambda p: torch.optim.Muon([each for each in p if each.dim() == 2], lr=0.05),
    "SignMomentum": SignMomentum,
    "CountingAdam": CountingAdam,
    "DecayingSgd": lambda p: DecayingSgd(p, lr=0.1, momentum=0.9),
}
STEPS = 8
"""More than RAdam's rectification and ASGD's average wait for."""


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


def batches(count=STEPS, rows=6):
    generator = torch.Generator().manual_seed(1)
    return [tuple(torch.randn(rows, width, generator=generator) for width in (4, 2)) for _ in range(count)]


def train_eagerly(model, optimizer, data, scheduler=None):
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def assert_same_weights(found, expected, tolerance=1e-6):
    for one, other in zip(found.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def numbers(state):
    return {
        (position, name): torch.as_tensor(value, dtype=torch.float64)
        for position, kept in state["state"].items()
        for name, value in kept.items()
        if value is not None
    }


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_step_with_a_schedule_equals_eager_and_so_does_the_state(name):
    theirs, mine = network(), network()
    eager, given = (OPTIMIZERS[name](list(each.parameters())) for each in (theirs, mine))
    schedules = [torch.optim.lr_scheduler.LinearLR(each, 1.0, 0.5, STEPS) for each in (eager, given)]
    assert not has_rule(given)
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph", check="first")
    train_eagerly(theirs, eager, batches(), schedules[0])
    for x, y in batches():
        step(x, y)
        schedules[1].step()
    assert_same_weights(mine, theirs)
    expected, found = numbers(eager.state_dict()), numbers(given.state_dict())
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["NAdam", "CountingAdam", "Adagrad"])
def test_the_state_moves_between_eager_and_program_in_both_directions(name):
    theirs, mine = network(), network()
    eager, given = (OPTIMIZERS[name](list(each.parameters())) for each in (theirs, mine))
    data = batches()
    train_eagerly(theirs, eager, data)
    train_eagerly(mine, given, data[:3])
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    for x, y in data[3:6]:
        step(x, y)
    back = network()
    back.load_state_dict(mine.state_dict())
    again = OPTIMIZERS[name](list(back.parameters()))
    again.load_state_dict(copy.deepcopy(given.state_dict()))
    train_eagerly(back, again, data[6:])
    assert_same_weights(back, theirs)


def test_a_checkpoint_continues(tmp_path):
    data = batches()

    def trainer():
        model = network()
        optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
        step = pilotage.training(model, optimizer, loss=nn.MSELoss(), tier="graph")
        step.compile(*data[0])
        return model, step

    undisturbed, step = trainer()
    for x, y in data[:4]:
        step(x, y)
    step.save_checkpoint(tmp_path, 4)
    for x, y in data[4:]:
        step(x, y)
    restored, other = trainer()
    assert other.restore_checkpoint(tmp_path).step == 4
    for x, y in data[4:]:
        other(x, y)
    assert_same_weights(restored, undisturbed, tolerance=0)


def test_accumulated_and_clipped_gradients_reach_the_own_step():
    theirs, mine = network(), network()
    eager, given = (torch.optim.RAdam(each.parameters(), lr=0.05) for each in (theirs, mine))
    step = pilotage.training(
        mine, given, loss=nn.MSELoss(), gradient_accumulation=2, device_iterations=2, clip_grad_norm=0.1, tier="graph"
    )
    data = batches(3, rows=12)
    for x, y in data:
        for inputs, targets in zip(x.chunk(2), y.chunk(2), strict=True):
            eager.zero_grad()
            for part, target in zip(inputs.chunk(2), targets.chunk(2), strict=True):
                (nn.functional.mse_loss(theirs(part), target) / 2).backward()
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
            eager.step()
        step(x, y)
    assert_same_weights(mine, theirs)


def test_groups_have_their_own_settings():
    theirs, mine = network(), network()

    def made(model):
        return torch.optim.Adamax([{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters()}])

    eager, given = made(theirs), made(mine)
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    train_eagerly(theirs, eager, batches(3))
    for x, y in batches(3):
        step(x, y)
    assert_same_weights(mine, theirs)


def test_torchs_own_optimizers_with_a_rule_keep_it():
    model = network()
    step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss())
    assert [type(group.rule) for group in step._executor.plan.groups] == [SGD.rule]


@pytest.mark.long
def test_an_own_step_is_compiled(tmp_path):
    theirs, mine = network(), network()
    eager, given = (torch.optim.NAdam(each.parameters(), lr=0.02) for each in (theirs, mine))
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="compiled", cache_directory=tmp_path)
    train_eagerly(theirs, eager, batches(4))
    for x, y in batches(4):
        step(x, y)
    assert "compiled" in str(step.record)
    assert_same_weights(mine, theirs)
