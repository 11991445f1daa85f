"""Rounding does not explain a forward that is not repeatable."""

import gc
import itertools
import random

import numpy as np
import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import MismatchError
from pilotage.events import Checked


class LayerDrop(nn.Module):
    """Leaves out layers by chance, as Python draws it."""

    def __init__(self):
        super().__init__()
        self.layers, self.last = nn.ModuleList(nn.Linear(6, 6) for _ in range(4)), nn.Linear(6, 1)

    def forward(self, x):
        for layer in self.layers:
            if random.random() > 0.5:
                x = torch.tanh(layer(x))
        return self.last(x).square().mean()


class Noisy(nn.Linear):
    """Adds noise that numpy draws."""

    def forward(self, x):
        noise = torch.as_tensor(np.random.randn(len(x), self.in_features), dtype=x.dtype)
        return super().forward(x + noise).square().mean()


COUNT = itertools.count()


class Counting(nn.Linear):
    """Depends on a counter outside of the module."""

    def forward(self, x):
        return super().forward(x + next(COUNT)).square().mean()


CHANCE = {"layer drop": LayerDrop, "numpy": lambda: Noisy(6, 3)}


def trainer(module, heard=(), tier="graph", **options):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    return pilotage.training(module, optimizer, backend="cpu", tier=tier, listeners=heard, **options)


@pytest.mark.parametrize("name", CHANCE)
@pytest.mark.parametrize("seed", range(4))
def test_a_forward_that_draws_outside_of_torch_is_not_compared(name, seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    heard = []
    trainer(CHANCE[name](), [heard.append], check="first")(torch.randn(12, 6))
    (found,) = [each for each in heard if isinstance(each, Checked)]
    assert found.agrees is None
    assert "random numbers of Python or numpy" in found.summary


def test_a_forward_that_does_not_repeat_itself_is_refused():
    module = Counting(6, 3)
    weights = {name: each.clone() for name, each in module.state_dict().items()}
    step = trainer(module, check="first")
    with pytest.raises(MismatchError, match="is not repeatable"):
        step(torch.randn(12, 6))
    torch.testing.assert_close(module.state_dict(), weights, rtol=0, atol=0)


def test_it_is_a_warning_on_request():
    heard = []
    trainer(Counting(6, 3), [heard.append], check="first", on_mismatch="warn")(torch.randn(12, 6))
    assert [each.agrees for each in heard if isinstance(each, Checked)] == [False]
    assert any("is not repeatable" in getattr(each, "message", "") for each in heard)


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("device_iterations", [1, 2])
def test_random_numbers_of_python_and_numpy_continue_as_without_a_comparison(device_iterations, tier):
    after = []
    for check in ("off", "first"):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        step = trainer(LayerDrop(), tier=tier, check=check, device_iterations=device_iterations)
        step(torch.randn(12, 6))
        after.append((random.random(), np.random.rand()))
    assert after[0] == after[1]


def test_draws_of_other_code_beside_a_comparison_do_no_harm(monkeypatch):
    """A thread that loads data may draw at any time; forward itself repeats."""

    class Plain(nn.Linear):
        def forward(self, x):
            random.random()
            return super().forward(x).square().mean()

    heard = []
    trainer(Plain(6, 3), [heard.append], check="first")(torch.randn(12, 6))
    assert [each.agrees for each in heard if isinstance(each, Checked)] == [True]


class Tabled(nn.Linear):
    """Has a large tensor that is neither a parameter nor a buffer."""

    def __init__(self):
        super().__init__(6, 3)
        self.table = torch.zeros(123_457)

    def forward(self, x):
        return (super().forward(x) + self.table[:3]).square().mean()


def test_a_comparison_frees_what_it_has_taken():
    held = []
    for check in ("off", "first"):
        step = trainer(Tabled(), check=check)
        step(torch.randn(12, 6))
        step(torch.randn(12, 6))
        gc.collect()
        held.append(sum(1 for each in gc.get_objects() if type(each) is torch.Tensor and each.numel() == 123_457))
        del step
        gc.collect()
    assert held[0] == held[1]
