"""Random networks of parts that are hard to recompute train bitwise identically with recomputation."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.optim.reading import read_optimizer
from pilotage.options.choices import Recomputation
from pilotage.options.execution import Execution
from pilotage.program.graphs.forward_marks import keep_for_backward
from pilotage.runtime.executor import Executor

WIDTH = 6
X = torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(1))


class Network(nn.Module):
    """A chain of parts; some of their results are kept."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        choose = random.Random(seed)
        length = choose.randint(3, 9)
        self.parts = [choose.choice(PARTS) for _ in range(length)]
        self.kept = {choose.randrange(length)} | {number for number in range(length) if choose.random() < 0.4}
        self.picks = [choose.random() for _ in range(length)]
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(length + 1))
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(length))
        self.register_buffer("total", torch.zeros(WIDTH))

    def forward(self, x):
        x = self.layers[-1](x)
        earlier = []
        for number, part in enumerate(self.parts):
            earlier.append(x)
            x = part(self, number, x, earlier)
            if number in self.kept:
                keep_for_backward(x)
        return functional.mse_loss(x, torch.ones_like(x))


def plain(network, number, x, earlier):
    return torch.tanh(network.layers[number](x))


def normalised(network, number, x, earlier):
    return network.norms[number](x)


def activated_in_place(network, number, x, earlier):
    return functional.relu_(network.layers[number](x))


def dropped(network, number, x, earlier):
    return functional.dropout(x, 0.3, training=True)


def dropped_in_place(network, number, x, earlier):
    return functional.dropout(network.layers[number](x), 0.3, training=True, inplace=True)


def joined_with_an_earlier_one(network, number, x, earlier):
    return x + earlier[int(network.picks[number] * len(earlier))]


def changed_by_slices(network, number, x, earlier):
    y = network.layers[number](x)
    y[:, :3].add_(0.1)
    y[:, 1].mul_(2)
    return y.sigmoid()


def read_before_and_after_a_view_was_changed(network, number, x, earlier):
    y = network.layers[number](x)
    view, before = y[:, 2:], (y * 0.2).exp()
    view.mul_(0.7)
    return torch.sigmoid(y) * before


def reshaped(network, number, x, earlier):
    return x.view(2, -1, WIDTH).transpose(1, 2).reshape(-1, WIDTH).sin()


def counted_in_a_buffer(network, number, x, earlier):
    network.total.add_(x.detach().mean(0) * 0.01)
    return x * (network.total + 1).clone()


def cut_and_joined(network, number, x, earlier):
    one, other = x.chunk(2, 1)
    return torch.cat([other.tanh(), one.sin()], 1)


def sorted_values(network, number, x, earlier):
    values, places = x.sort(1)
    return values * 0.5 + x.gather(1, places)


def filled_in(network, number, x, earlier):
    y = torch.zeros_like(x)
    y[:, :2] = x[:, :2].tanh()
    return y.add_(x)


PARTS = [
    plain,
    normalised,
    activated_in_place,
    dropped,
    dropped_in_place,
    joined_with_an_earlier_one,
    changed_by_slices,
    read_before_and_after_a_view_was_changed,
    reshaped,
    counted_in_a_buffer,
    cut_and_joined,
    sorted_values,
    filled_in,
]


def trained(network, recomputation):
    network = copy.deepcopy(network)
    torch.manual_seed(3)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    plan = read_optimizer(torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9), names)
    executor = Executor(network, plan=plan, execution=Execution(backend="cpu", recomputation=recomputation))
    losses = torch.stack([executor(X) for _ in range(2)])
    executor.fetch_weights()
    return losses, network.state_dict()


@pytest.mark.parametrize(
    "seed",
    [
        0,
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6)),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 120)),
    ],
)
def test_random_networks_train_bitwise_identically_with_recomputation(seed):
    network = Network(seed)
    losses, weights = trained(network, Recomputation.NONE)
    same_losses, same_weights = trained(network, Recomputation.MARKED)
    torch.testing.assert_close(same_losses, losses, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(dict(same_weights), dict(weights), rtol=0, atol=0, equal_nan=True)
