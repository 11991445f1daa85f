"""Stateful parts of training on several cards."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import NonFiniteLossError
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import NonFiniteLoss, OutputMode, Pooling, ReplicaGrouping, Tier
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor

ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
DEVICES = [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda:0", marks=ON_CUDA)]


class Net(nn.Module):
    """A shared layer, and a scale that may have several copies."""

    def __init__(self, copies: int | None = None) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.rand(4) + 0.5 if copies is None else torch.rand(copies, 4) + 0.5)

    def forward(self, x):
        output = functional.dropout(self.layer(x), 0.2) * self.scale
        return output, functional.mse_loss(output, torch.ones_like(output))


def executor_on(device, cards, *, module=None, accumulation=1, plan=None, dtype=torch.float32, **settings):
    torch.manual_seed(2)
    module = (module or Net()).to(dtype)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    optimizer = read_optimizer(torch.optim.Adam(module.parameters(), lr=0.05, eps=1e-4), names)
    execution = Execution(
        batching=Batching(replicas=4, gradient_accumulation=accumulation),
        outputs=OutputMode.ALL,
        backend=torch.device(device).type,
        cards=(device,) * cards,
        seed=6,
        **{"tier": Tier.GRAPH, **settings},
    )
    return Executor(module, execution=execution, plan=replace(optimizer, **(plan or {})))


def run(executor, calls=4, accumulation=1):
    generator = torch.Generator().manual_seed(1)
    dtype = next(executor.module.parameters()).dtype
    return [executor(torch.randn(4 * accumulation * 2, 4, generator=generator).to(dtype)) for _ in range(calls)]


def assert_as_on_one(device, tolerance=1e-6, **settings):
    """Four replicas on two and on four cards equal those on one."""
    accumulation = settings.get("accumulation", 1)
    one = executor_on(device, 1, **settings)
    expected = run(one, accumulation=accumulation)
    for cards in (2, 4):
        several = executor_on(device, cards, **settings)
        torch.testing.assert_close(run(several, accumulation=accumulation), expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(several.module.state_dict(), one.module.state_dict(), rtol=tolerance, atol=tolerance)
        first, *copies = several.session.state.parts
        for copy in copies:
            torch.testing.assert_close(copy.parameters, first.parameters, rtol=0, atol=0)
            torch.testing.assert_close(copy.counters, first.counters, rtol=0, atol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pooling", Pooling)
def test_every_pooling_equals_one_card(device, pooling):
    assert_as_on_one(device, accumulation=2, pooling=pooling)


@pytest.mark.parametrize("device", DEVICES)
def test_the_loss_scale_follows_the_gradients_of_all_cards(device):
    assert_as_on_one(device, plan={"automatic_loss_scaling": True, "loss_scaling": 2.0**14})


@pytest.mark.parametrize("device", DEVICES)
def test_the_norm_of_all_gradients_is_bounded(device):
    assert_as_on_one(device, plan={"max_gradient_norm": 0.01})


@pytest.mark.parametrize("device", DEVICES)
def test_all_cards_round_the_same_way(device):
    """Sums in another order may round differently, so cards are compared with each other."""
    executors = [
        executor_on(device, cards, dtype=torch.bfloat16, plan={"stochastic_rounding": True}) for cards in (1, 2)
    ]
    for executor in executors:
        run(executor)
    first, copy = executors[1].session.state.parts
    torch.testing.assert_close(copy.parameters, first.parameters, rtol=0, atol=0)
    torch.testing.assert_close(*(executor.session.streams.states for executor in executors), rtol=0, atol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grouping", ReplicaGrouping)
@pytest.mark.parametrize("pooling", [Pooling.POST, Pooling.RUNNING])
def test_groups_of_replicas_train_their_own_copies(device, grouping, pooling):
    results = []
    for cards in (1, 2, 4):
        torch.manual_seed(0)
        executor = executor_on(device, cards, module=Net(copies=2), accumulation=2, pooling=pooling)
        executor.group_replicas("scale", 2, grouping)
        results.append((run(executor, accumulation=2), executor.module.state_dict()))
    for found in results[1:]:
        torch.testing.assert_close(found, results[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_the_eager_tier_runs_on_several_cards_too(device):
    assert_as_on_one(device, tier=Tier.EAGER, accumulation=2)


@pytest.mark.parametrize("device", DEVICES)
def test_optimizer_state_reaches_all_cards(device):
    torch.manual_seed(3)
    results = []
    for cards in (1, 2):
        begun = executor_on(device, 1)
        run(begun)
        resumed = executor_on(device, cards)
        resumed.compile(torch.zeros(8, 4))
        resumed.set_optimizer_state(begun.session.optimizer_state())
        results.append((run(resumed), resumed.module.state_dict()))
    torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)


class Losing(nn.Linear):
    def forward(self, x):
        return functional.mse_loss(super().forward(x), torch.zeros(()).expand(2, 3))


@pytest.mark.parametrize("cards", [1, 2])
def test_a_loss_that_is_not_finite_on_any_card_stops_all(cards):
    module = Losing(3, 3)
    step = pilotage.training(
        module,
        torch.optim.SGD(module.parameters(), lr=0.1),
        backend="cpu",
        cards=["cpu"] * cards,
        replicas=2,
        tier="graph",
        nonfinite_loss=NonFiniteLoss.RAISE,
    )
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(NonFiniteLossError):
        step(torch.tensor([0.0, 0.0, 0.0, float("nan")]).reshape(4, 1).expand(4, 3))
    torch.testing.assert_close(module.state_dict(), before)
    assert all(not card.flat_gradients.any() for card in getattr(step._executor.session.state, "parts", []))
