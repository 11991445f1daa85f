"""Recomputation in backward gives bitwise identical results with less memory."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import Recomputation, Tier
from pilotage.options.execution import Execution
from pilotage.program.graphs.forward_marks import keep_for_backward
from pilotage.program.graphs.origins import enter_stage
from pilotage.runtime.executor import Executor

X = torch.randn(8, 4, 8, 6, generator=torch.Generator().manual_seed(0))
LAYERS = 4


class Convolutions(nn.Module):
    """Blocks with everything that is hard to recompute: statistics, in-place writes, random draws."""

    def __init__(self, *, every: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.every = every
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(dropout))
            for _ in range(LAYERS)
        )

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number % self.every == self.every - 1:
                keep_for_backward(x)
        return functional.mse_loss(x, torch.zeros_like(x))


class Written(nn.Module):
    """Reads values that are written to before backward: a buffer, the base of a view, an own value."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.register_buffer("total", torch.zeros(6))

    def forward(self, x):
        for layer in self.layers:
            y = torch.tanh(layer(x)) * (self.total + 1)
            self.total.add_(y.detach().mean((0, 1, 2)) * 0.1)
            part = y[..., :3]
            z = (y * 0.1).exp()
            part.mul_(0.5)
            y[..., 3:].sub_(0.1)
            x = torch.sigmoid(y) + z.sin()
            keep_for_backward(x)
        return functional.mse_loss(x, torch.zeros_like(x))


def trained(module, recomputation, *, updates=2, batching=None, tier=None):
    module = copy.deepcopy(module)
    torch.manual_seed(1)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names)
    execution = Execution(backend="cpu", tier=tier, recomputation=recomputation, batching=batching or Batching())
    executor = Executor(module, plan=plan, execution=execution)
    losses = [float(executor(X)) for _ in range(updates)]
    executor.fetch_weights()
    return losses, dict(module.state_dict()), executor


def held_at_once(executor):
    """The peak memory of a run of the graph."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True, acc_events=True) as profile:
        executor(X)
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


@pytest.mark.parametrize(
    ("module", "batching"),
    [
        (Convolutions(every=1), Batching()),
        (Written(), Batching()),
        (Convolutions(), Batching(gradient_accumulation=4, device_iterations=2)),
    ],
    ids=["all kept", "written", "accumulated"],
)
def test_training_is_bitwise_identical(module, batching):
    expected, weights, _ = trained(module, Recomputation.NONE, batching=batching)
    losses, same, _ = trained(module, Recomputation.MARKED, batching=batching)
    assert losses == expected
    assert all(torch.equal(same[name], weights[name]) for name in weights)


def test_only_checkpoints_and_one_recomputed_part_are_in_memory():
    module = Convolutions(dropout=0.0)
    *_, keeping = trained(module, Recomputation.NONE, tier=Tier.GRAPH)
    *_, recomputing = trained(module, Recomputation.MARKED, tier=Tier.GRAPH)
    # Of two values in each of four blocks, two are kept; backward needs the four of two blocks at the same time.
    assert held_at_once(keeping) - held_at_once(recomputing) >= (8 - 6) * X.nbytes


def test_random_numbers_and_statistics_are_computed_once():
    *_, keeping = trained(Convolutions(), Recomputation.NONE)
    *_, recomputing = trained(Convolutions(), Recomputation.MARKED)
    kept, again = (targets(executor) for executor in (keeping, recomputing))
    assert again.count(torch.ops.aten.convolution.default) > kept.count(torch.ops.aten.convolution.default)
    assert again.count(torch.ops.aten.bernoulli_.float) == kept.count(torch.ops.aten.bernoulli_.float)
    statistics = [node for node in nodes(recomputing) if node.target is torch.ops.aten.native_batch_norm.default]
    assert sum(node.args[3] is not None for node in statistics) == LAYERS


def test_nothing_is_recomputed_without_marks():
    *_, executor = trained(Unmarked(), Recomputation.MARKED)
    assert targets(executor).count(torch.ops.aten.tanh.default) == 2


def test_values_between_stages_are_kept_with_recomputation_by_stages():
    *_, marked = trained(Staged(), Recomputation.MARKED)
    losses, _, staged = trained(Staged(), Recomputation.STAGES)
    assert targets(marked).count(torch.ops.aten.tanh.default) == 4
    # The backward of the last stage follows at once, so it recomputes nothing.
    assert targets(staged).count(torch.ops.aten.tanh.default) == 6
    assert trained(Staged(), Recomputation.NONE)[0] == losses


def test_values_that_another_stage_needs_are_always_kept():
    class HandedOn(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            enter_stage(0)
            handed_on = torch.tanh(self.layer(x).sin()).exp()
            enter_stage(1)
            y = handed_on * handed_on.cos()
            keep_for_backward(y)
            loss = functional.mse_loss(y, torch.zeros_like(y))
            enter_stage(None)
            return loss

    *_, executor = trained(HandedOn(), Recomputation.MARKED)
    counts = [targets(executor).count(op.default) for op in (torch.ops.aten.exp, torch.ops.aten.tanh)]
    assert counts == [1, 2]


class Staged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            enter_stage(number // 2)
            x = torch.tanh(layer(x)).sin()
        loss = functional.mse_loss(x, torch.zeros_like(x))
        enter_stage(None)
        return loss


class Unmarked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        return functional.mse_loss(torch.tanh(torch.tanh(self.layer(x))), x)


def nodes(executor):
    (computation,) = executor.session.program.computations.values()
    return list(computation.graph.graph.nodes)


def targets(executor):
    return [node.target for node in nodes(executor)]
