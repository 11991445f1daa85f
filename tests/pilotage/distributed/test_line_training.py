"""Stages in processes of their own reach the weights of one process that sees the same micro-batches."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import peers_here
from pilotage.errors import PilotageError

pytestmark = pytest.mark.slow

SAMPLES = 2
CALLS = 3


class Staged(nn.Module):
    """Four stages: with BatchNorm, a skip from the first to the last, a weight that two stages use, and dropout if asked."""

    def __init__(self, stages: int = 4, *, dropout: float = 0.0, tied: bool = False) -> None:
        super().__init__()
        self.stages = stages
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.middle = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(dropout))
        self.gate = nn.Parameter(torch.ones(8))
        self.last = nn.Linear(8, 8 if tied else 4)
        self.tied = tied

    def _enter(self, quarter: int) -> None:
        pilotage.enter_stage(quarter * self.stages // 4)

    def forward(self, x, target=None):
        self._enter(0)
        first = functional.relu(self.first(x))
        self._enter(1)
        hidden = self.norm(first).relu_()
        self._enter(2)
        hidden = self.middle(hidden) * self.gate
        self._enter(3)
        output = self.last(hidden + first)
        if self.tied:
            output = output @ self.first.weight
        if target is None:
            return output
        return output, hidden.sum(), functional.cross_entropy(output, target)


def batches(rounds: int):
    """For each call, so many micro-batches in a row."""
    generator = torch.Generator().manual_seed(5)
    for _ in range(CALLS):
        yield (
            torch.randn(rounds, SAMPLES, 6, generator=generator),
            torch.randint(4, (rounds, SAMPLES), generator=generator),
        )


def part_of(tensor, *, instance: int, instances: int, replicas: int):
    rounds = tensor.unflatten(0, (-1, instances, replicas))
    return rounds[:, instance].flatten(0, 2)


OPTIMIZERS = {
    "sgd": lambda module: torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda module: torch.optim.Adam(module.parameters(), lr=0.02),
}


def train(*, stages, instances=1, replicas=1, accumulation=4, optimizer="sgd", seed=1, **options):
    model_options = {name: options.pop(name) for name in ("dropout", "tied") if name in options}
    peers = peers_here()
    instance = 0 if peers is None else peers.world.rank
    torch.manual_seed(seed)
    module = Staged(stages, **model_options)
    settings = {"tier": "graph", "outputs": "all", "distributed": True, "broadcast_buffers": False} | options
    step = pilotage.training(
        module,
        OPTIMIZERS[optimizer](module),
        replicas=replicas,
        gradient_accumulation=accumulation,
        **settings,
    )
    outputs = []
    iterations = options.get("device_iterations", 1)
    for images, targets in batches(iterations * accumulation * instances * replicas):
        place = {"instance": instance, "instances": instances, "replicas": replicas}
        outputs.append([o.clone() for o in step(part_of(images, **place), part_of(targets, **place))])
    weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    slots = step.optimizer_state_dict()["slots"]
    scores = pilotage.inference(module.eval(), distributed=True, tier="graph", device_iterations=2)(
        torch.linspace(-1, 1, 24).reshape(4, 6)
    )
    return weights, outputs, slots, scores


def alone(*, instances=1, replicas=1, pipeline=None, **case):
    return train(replicas=instances * replicas, **case)


def assert_close(mine, theirs):
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def check(world, *, stages, instances=1, replicas=1, **case):
    reference = alone(stages=stages, instances=instances, replicas=replicas, **case)
    found = world(train, instances, line=stages, stages=stages, instances=instances, replicas=replicas, **case)
    weights, outputs, slots, scores = reference
    assert len(found) == instances * stages
    for number, (mine, my_outputs, my_slots, my_scores) in enumerate(found):
        instance = number // stages
        assert_close(mine, weights if instance == 0 else weights | {n: mine[n] for n in mine if n.startswith("norm.")})
        assert_close(my_slots, slots)
        if instance == 0:
            assert_close(my_scores, scores)
        for mine_of_call, theirs_of_call in zip(my_outputs, outputs, strict=True):
            for position in (1, 2):
                theirs = theirs_of_call[position].unflatten(0, (-1, instances, replicas))[:, instance].flatten()
                assert_close(mine_of_call[position], theirs)


def test_four_stages(world):
    check(world, stages=4)
