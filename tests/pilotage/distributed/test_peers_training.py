"""Instances x replicas x accumulation reach the weights of one process that sees the same micro-batches."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import Peers, peers_here
from pilotage.distributed.world import World
from pilotage.errors import BufferBroadcastError, OptionError
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import Pooling
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor

pytestmark = pytest.mark.slow

SAMPLES = 2
CALLS = 3
TUTORIAL = Path(__file__).parents[3] / "examples" / "fashion_mnist" / "model.py"


def tutorial_classifier() -> nn.Module:
    """The tutorial's network, loaded from its file because an instance cannot import test folders."""
    spec = importlib.util.spec_from_file_location("tutorial_model", TUTORIAL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GarmentClassifier()


class NormClassifier(nn.Module):
    """What the tutorial's network lacks: batch statistics and random numbers."""

    def __init__(self, *, norm: bool, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.layer = nn.Linear(3 * 26 * 26, 10)

    def forward(self, x, target):
        hidden = functional.relu(self.norm(self.convolution(x)))
        output = self.layer(self.dropout(hidden.flatten(1)))
        return output, functional.cross_entropy(output, target)


def batches(rounds: int):
    """The micro-batches of each call, in a row."""
    generator = torch.Generator().manual_seed(5)
    for _ in range(CALLS):
        yield (
            torch.randn(rounds, SAMPLES, 1, 28, 28, generator=generator),
            torch.randint(10, (rounds, SAMPLES), generator=generator),
        )


def part_of(tensor, *, instance: int, instances: int, replicas: int):
    """The micro-batches of an instance: those of its replicas in each round."""
    rounds = tensor.unflatten(0, (-1, instances, replicas))
    return rounds[:, instance].flatten(0, 2)


def adam(module):
    # A gradient that is only rounding has a random sign, and with a small eps it would make a full step.
    return torch.optim.Adam(module.parameters(), lr=0.002, eps=1e-4)


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def train(*, instances: int, replicas: int, accumulation: int, optimizer: str = "sgd", seed: int = 1, **options):
    norm, dropout = options.pop("norm", False), options.pop("dropout", 0.0)
    peers = peers_here()
    instance = 0 if peers is None else peers.world.rank
    torch.manual_seed(seed + options.pop("seeds_apart", 0) * instance)
    module = NormClassifier(norm=norm, dropout=dropout) if norm or dropout else tutorial_classifier()
    given = {"sgd": sgd, "adam": adam}[optimizer](module)
    rates = torch.optim.lr_scheduler.ExponentialLR(given, options.pop("gamma", 1.0))
    settings = {"tier": "graph", "outputs": "all", "distributed": True} | options
    step = pilotage.training(
        module,
        given,
        replicas=replicas,
        gradient_accumulation=accumulation,
        **settings,
    )
    losses = []
    iterations = options.get("device_iterations", 1)
    for images, targets in batches(iterations * accumulation * instances * replicas):
        place = {"instance": instance, "instances": instances, "replicas": replicas}
        losses.append(step(part_of(images, **place), part_of(targets, **place))[1])
        rates.step()
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}, torch.cat(
        [loss.flatten() for loss in losses]
    )


def alone(*, instances: int, replicas: int, accumulation: int, **options):
    return train(instances=1, replicas=instances * replicas, accumulation=accumulation, **{**options, "cards": ["cpu"]})


def assert_close(mine, theirs):
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-5, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}")


def check(world, **case):
    reference, reference_losses = alone(**case)
    found = world(train, case["instances"], **case)
    for rank, (state, losses) in enumerate(found):
        trained = {name: tensor for name, tensor in state.items() if "running" not in name}
        assert_close(trained, {name: reference[name] for name in trained})
        assert all(torch.equal(tensor, found[0][0][name]) for name, tensor in trained.items())
        mine = losses.unflatten(0, (-1, case["replicas"]))
        theirs = reference_losses.unflatten(0, (-1, case["instances"], case["replicas"]))[:, rank]
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    assert_close(found[0][0], reference)


def train_on_gaudi(**case):
    state, _ = train(**case, backend="hpu")
    return state, {dist.get_backend(group) for group in dist.distributed_c10d._world.pg_map}


def test_instances_on_gaudi_sum_with_its_own_library(world):
    case = {"instances": 2, "replicas": 1, "accumulation": 2}
    reference, _ = alone(**case)
    found = world(train_on_gaudi, 2, **case)
    for state, libraries in found:
        assert_close(state, reference)
        assert "hccl" in libraries
        assert all(torch.equal(tensor, state[name]) for name, tensor in found[0][0].items())


@pytest.fixture(autouse=True)
def without_a_launcher(monkeypatch):
    for name in ("POPDIST_NUM_TOTAL_REPLICAS", "RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"instances": 2, "replicas": 1, "accumulation": 1}, marks=pytest.mark.slow),
        pytest.param(
            {"instances": 2, "replicas": 2, "accumulation": 2, "norm": True, "device_iterations": 2},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"instances": 2, "replicas": 1, "accumulation": 2, "optimizer": "adam", "reduction": "sum", "gamma": 0.5},
            marks=pytest.mark.slow,
        ),
        {"instances": 2, "replicas": 1, "accumulation": 1, "norm": True, "tier": "eager"},
    ],
    ids=str,
)
def test_two_instances_reach_the_weights_of_one_process(world, case):
    check(world, **case)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        {"replicas": 2, "accumulation": 2, "norm": True, "dropout": 0.3, "device_iterations": 2},
        {"replicas": 4, "accumulation": 1, "optimizer": "adam", "seeds_apart": 7},
    ],
    ids=str,
)
def test_two_instances_with_two_cards_each_reach_the_weights_of_one_process_on_one_card(world, case):
    check(world, instances=2, cards=["cpu", "cpu"], **case)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        {"instances": 4, "replicas": 1, "accumulation": 2, "norm": True},
        {"instances": 4, "replicas": 2, "accumulation": 1},
    ],
    ids=str,
)
def test_four_instances_reach_the_weights_of_one_process(world, case):
    check(world, **case)


@pytest.mark.long
@pytest.mark.parametrize(("instances_", "replicas", "accumulation"), [*product((1, 2, 4), repeat=3)])
@pytest.mark.parametrize("norm", [False, True])
def test_every_split_reaches_the_weights_of_one_process(world, instances_, replicas, accumulation, norm):
    check(world, instances=instances_, replicas=replicas, accumulation=accumulation, norm=norm)


@pytest.mark.slow
def test_instances_that_are_seeded_differently_begin_with_the_weights_of_the_first(world):
    case = {"instances": 2, "replicas": 1, "accumulation": 1}
    reference, _ = alone(**case)
    for state, _ in world(train, 2, seeds_apart=7, **case):
        assert_close(state, reference)


@pytest.mark.slow
def test_dropout_differs_among_replicas_and_is_that_of_one_process(world):
    case = {"instances": 2, "replicas": 2, "accumulation": 1, "dropout": 0.5}
    check(world, **case)


def draw_masks(**options):
    module = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
    with torch.no_grad():
        module[0].weight.zero_()
        module[0].bias.fill_(1)
    peers = peers_here()
    step = pilotage.training(
        module,
        sgd(module),
        loss=lambda output, target: output.sum() * 0,
        distributed=True,
        outputs="all",
        tier="graph",
        **options,
    )
    replicas = options["replicas"]
    output, _ = step(torch.ones(64 * replicas, 1), torch.ones(64 * replicas, 1))
    assert peers is not None
    return output.reshape(replicas, 64)


@pytest.mark.slow
def test_all_replicas_draw_different_numbers_and_runs_are_repeatable(world):
    runs = [torch.cat(world(draw_masks, 2, replicas=2, seed=11)) for _ in range(2)]
    assert torch.equal(*runs)
    assert len({tuple(mask.tolist()) for mask in runs[0]}) == 4


def train_with_pooling(pooling: str, instances: int, replicas: int, accumulation: int):
    peers = peers_here()
    rank = 0 if peers is None else peers.world.rank
    torch.manual_seed(1)
    module = tutorial_classifier()
    plan = read_optimizer(sgd(module), {id(parameter): name for name, parameter in module.named_parameters()})
    execution = Execution(
        batching=Batching(replicas=replicas, gradient_accumulation=accumulation), pooling=Pooling(pooling)
    ).shared_with(instance=rank, instances=instances)
    step = Executor(module, execution=execution, plan=plan, peers=peers)
    for images, targets in batches(accumulation * instances * replicas):
        place = {"instance": rank, "instances": instances, "replicas": replicas}
        step(part_of(images, **place), part_of(targets, **place))
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize("pooling", [pooling.value for pooling in Pooling])
def test_the_mean_is_over_all_instances_for_every_pooling(world, pooling):
    reference = train_with_pooling(pooling, 1, 4, 2)
    for state in world(train_with_pooling, 2, pooling=pooling, instances=2, replicas=2, accumulation=2):
        assert_close(state, reference)


def refuse_buffers():
    try:
        train(instances=2, replicas=1, accumulation=1, norm=True, broadcast_buffers=True)
    except BufferBroadcastError as error:
        return str(error)


def test_buffers_that_are_promised_equal_and_would_differ_are_refused(world):
    assert all("norm.running_mean" in message for message in world(refuse_buffers, 2))


def go_on_from_own_state(tier: str):
    """The results of an uninterrupted training, and of one resumed half-way from each instance's checkpoint."""
    given = list(batches(4))

    def trainer():
        torch.manual_seed(1)
        module = NormClassifier(norm=True, dropout=0.0)
        options = {"tier": tier, "distributed": True}
        return module, pilotage.training(module, sgd(module), **options)

    def call(step, images, targets):
        place = {"instance": peers_here().world.rank, "instances": 2, "replicas": 1}
        step(part_of(images[:2], **place), part_of(targets[:2], **place))

    module, step = trainer()
    for number, batch in enumerate(given):
        call(step, *batch)
        if number == 0:
            kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}, step.optimizer_state_dict()
    whole = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    step.destroy()
    again, step = trainer()
    again.load_state_dict(kept[0])
    for number, batch in enumerate(given[1:]):
        if number == 0:
            place = {"instance": peers_here().world.rank, "instances": 2, "replicas": 1}
            step.compile(*(part_of(tensor[:2], **place) for tensor in batch))
            step.load_optimizer_state_dict(kept[1])
        call(step, *batch)
    return whole, {name: tensor.clone() for name, tensor in again.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_resumed_instance_keeps_its_statistics(world, tier):
    (first, first_again), (second, second_again) = world(go_on_from_own_state, 2, tier=tier)
    assert not torch.equal(first["norm.running_mean"], second["norm.running_mean"])
    for whole, again in ((first, first_again), (second, second_again)):
        assert [name for name, tensor in whole.items() if not torch.equal(tensor, again[name])] == []


def test_options_that_do_not_fit_the_world_are_refused():
    module = tutorial_classifier()
    plan = read_optimizer(sgd(module), {id(parameter): name for name, parameter in module.named_parameters()})
    two = Execution().shared_with(instance=1, instances=2)
    with pytest.raises(OptionError, match=r"instance 1 of 2, but it is rank 0 of 1\. .*poprun"):
        Executor(module, execution=two, plan=plan)
    with pytest.raises(OptionError, match=r"instance 0 of 1, but it is rank 1 of 2 \(set by poprun\)"):
        Executor(module, plan=plan, peers=Peers(world=World(rank=1, size=2, launcher="poprun")))
