"""Stages in separate processes reach the weights of one process that sees the same micro-batches."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

import pilotage
from pilotage.distributed.peers import peers_here

pytestmark = pytest.mark.slow

SAMPLES = 2
CALLS = 3
# By path, since this file is loaded on its own in processes without pytest.
Staged = runpy.run_path(str(Path(__file__).parents[1] / "staged.py"))["Staged"]


def batches(rounds: int):
    """The micro-batches of each call, in a row."""
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
    # Small steps: after a norm over two samples gradients nearly cancel, and Adam would amplify their rounding.
    "adam": lambda module: torch.optim.Adam(module.parameters(), lr=0.002, eps=1e-4),
}


def train(*, stages, instances=1, replicas=1, accumulation=4, optimizer="sgd", seed=1, **options):
    model_options = {name: options.pop(name) for name in ("dropout", "tied", "work_after_loss") if name in options}
    peers = peers_here()
    instance = 0 if peers is None else peers.world.rank
    torch.manual_seed(seed)
    module = Staged(stages, **model_options)
    given = OPTIMIZERS[optimizer](module)
    rates = torch.optim.lr_scheduler.ExponentialLR(given, options.pop("gamma", 1.0))
    settings = {"tier": "graph", "outputs": "all", "distributed": True, "broadcast_buffers": False} | options
    step = pilotage.training(
        module,
        given,
        replicas=replicas,
        gradient_accumulation=accumulation,
        **settings,
    )
    outputs = []
    iterations = options.get("device_iterations", 1)
    for images, targets in batches(iterations * accumulation * instances * replicas):
        place = {"instance": instance, "instances": instances, "replicas": replicas}
        outputs.append([o.clone() for o in step(part_of(images, **place), part_of(targets, **place))])
        rates.step()
    weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    slots = step.optimizer_state_dict()["slots"]
    scores = pilotage.inference(module.eval(), distributed=True, tier="graph", device_iterations=2)(
        torch.linspace(-1, 1, 24).reshape(4, 6)
    )
    return weights, outputs, slots, scores


def train_all(cases):
    return [train(**case) for case in cases]


def assert_close(mine, theirs):
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def check(world, *cases):
    """Compare several runs of one world with those of this process; all cases have the same stages and instances."""
    stages, instances = cases[0]["stages"], cases[0].get("instances", 1)
    found = world(train_all, instances, stages=stages, cases=cases)
    assert len(found) == instances * stages
    for position, case in enumerate(cases):
        expected = reference(**case)
        for number, runs in enumerate(found):
            assert_same(runs[position], expected, instance=number // stages, **case)


def reference(*, instances=1, replicas=1, pipeline=None, **case):
    return train(replicas=instances * replicas, **case)


def assert_same(mine, theirs, *, instance, instances=1, replicas=1, **_):
    (weights, outputs, slots, scores), (their_weights, their_outputs, their_slots, their_scores) = mine, theirs
    own = {} if instance == 0 else {name: weights[name] for name in weights if name.startswith("norm.")}
    assert_close(weights, their_weights | own)
    assert_close(slots, their_slots)
    if instance == 0:
        assert_close(scores, their_scores)
    for output, their_output in zip(outputs, their_outputs, strict=True):
        for value, their_value in zip(output, their_output, strict=True):
            rounds = their_value.reshape(-1, instances, replicas, SAMPLES * 6 if value.dim() > 1 else 1)
            assert_close(value.flatten(), rounds[:, instance].flatten())


def test_four_stages_reach_the_weights_of_one_process_in_every_order(world):
    check(
        world,
        {"stages": 4, "pipeline": "1f1b"},
        {"stages": 4, "pipeline": "gpipe", "optimizer": "adam", "device_iterations": 2},
        {"stages": 4, "pipeline": "sharded", "accumulation": 1, "tied": True},
    )


@pytest.mark.long
def test_stages_train_on_what_forward_returns_as_one_process_does(world):
    check(world, {"stages": 2, "instances": 2, "accumulation": 2, "work_after_loss": True})


def test_two_stages_of_two_instances_reach_the_weights_of_one_process(world):
    check(world, {"stages": 2, "instances": 2, "replicas": 2, "accumulation": 2, "gamma": 0.5})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")
def test_two_stages_on_a_card_reach_the_weights_of_one_process(world):
    check(world, {"stages": 2, "backend": "cuda"}, {"stages": 2, "backend": "cuda", "pipeline": "gpipe"})


@pytest.mark.long
@pytest.mark.parametrize("instances_", [1, 2])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_every_split_reaches_the_weights_of_one_process(world, stages, instances_, replicas):
    shared = {"stages": stages, "instances": instances_, "replicas": replicas}
    check(
        world,
        *(
            shared
            | {"pipeline": pipeline, "accumulation": accumulation, "tied": accumulation == 2, "optimizer": optimizer}
            for pipeline, optimizer in (("1f1b", "sgd"), ("gpipe", "adam"), ("sharded", "sgd"), (None, "adam"))
            for accumulation in (1, 2, 4)
            if pipeline != "1f1b" or accumulation * replicas >= stages
        ),
    )
