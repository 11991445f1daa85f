"""Eager steps against an explicit loop and against the engine."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import CAPTURED, LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.configuration.network import A21
from cosmictagger.data.events import Batch
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.devices.engine import EngineExecutor
from cosmictagger.networks.uresnet import build
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES
from cosmictagger.training.step import TrainingStep

NETWORK = replace(A21, depth=1, n_initial_filters=4, bottleneck_deepest=6, blocks_deepest_layer=1, blocks_per_layer=1)
FOCAL = LossBalanceScheme.focal
CPU = torch.device("cpu")


def batch(seed):
    generator = np.random.default_rng(seed)
    return Batch(
        image=generator.random((2, 3, 8, 12), dtype=np.float32),
        label=generator.integers(0, 3, (2, 3, 8, 12)).astype(np.uint8),
        entries=np.arange(2),
        event_ids=np.zeros((2, 3), np.int64),
    )


def parts(kind=OptimizerKind.adam, precision=Precision.float32):
    torch.manual_seed(0)
    network = build(NETWORK, NUMBER_TYPES[precision].activations)
    return network, build_optimizer(kind, network.parameters(), 1e-3)


def plain(kind=OptimizerKind.adam, precision=Precision.float32):
    return EagerExecutor(*parts(kind, precision), FOCAL, NUMBER_TYPES[precision], CPU)


def engine(kind=OptimizerKind.adam, precision=Precision.float32, accumulation=1):
    return EngineExecutor(*parts(kind, precision), FOCAL, NUMBER_TYPES[precision], "cpu", accumulation)


def losses(device, count=3, *, accumulation=1):
    numbers = range(0, count * accumulation, accumulation)
    return [
        device.train([batch(number + extra) for extra in range(accumulation)], 1e-3 * (1 + number)).loss
        for number in numbers
    ]


def test_gradients_of_several_batches_are_summed_before_one_update():
    device = plain(OptimizerKind.rmsprop)
    device.train([batch(0), batch(1)], 1e-2)
    network, optimizer = parts(OptimizerKind.rmsprop)
    step = TrainingStep(network, FOCAL)
    for number in (0, 1):
        given = batch(number)
        step(torch.from_numpy(given.image), torch.from_numpy(given.label))[1].backward()
    optimizer.param_groups[0]["lr"] = 1e-2
    optimizer.step()
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(device.state()["state_dict"][name], tensor)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CAPTURED, key=lambda kind: kind.name))
@pytest.mark.parametrize("precision", [Precision.float32, Precision.bfloat16])
def test_the_engine_gives_the_losses_of_eager_execution(kind, precision):
    assert losses(engine(kind, precision)) == pytest.approx(losses(plain(kind, precision)), rel=1e-5)


@pytest.mark.slow
def test_the_engine_accumulates_as_eager_execution_does():
    ours, theirs = engine(accumulation=2), plain()
    assert losses(ours, accumulation=2) == pytest.approx(losses(theirs, accumulation=2), rel=1e-5)
    one, other = ours.evaluate(batch(9)), theirs.evaluate(batch(9))
    assert one.loss == pytest.approx(other.loss, rel=1e-5)
    assert torch.equal(one.prediction, other.prediction)
    torch.testing.assert_close(one.metrics, other.metrics)
    assert ours.placement().updates == theirs.placement().updates == 3


def test_an_executor_continues_from_the_state_of_another():
    first, whole = plain(), plain()
    expected = losses(whole, 4)[2:]
    losses(first, 2)
    second = plain()
    second.restore(first.state())
    found = [second.train([batch(number)], 1e-3 * (1 + number)).loss for number in (2, 3)]
    assert found == expected


def test_evaluation_does_not_change_the_state():
    device = plain()
    before = device.state()["state_dict"]
    device.evaluate(batch(0))
    after = device.state()["state_dict"]
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_placement_reports_what_was_run():
    device = plain(OptimizerKind.rmsprop, Precision.bfloat16)
    losses(device, 2)
    placement = device.placement()
    assert (placement.device, placement.tier, placement.optimizer, placement.updates) == ("cpu", "eager", "RMSprop", 2)
    assert placement.precision == "bfloat16 activations, float32 weights"
