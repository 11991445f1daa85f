"""The engine's executor on a CPU, and resuming from its state."""

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

NETWORK = replace(A21, depth=1, n_initial_filters=4, bottleneck_deepest=6, blocks_deepest_layer=1, blocks_per_layer=1)


def batch(seed):
    generator = np.random.default_rng(seed)
    return Batch(
        image=generator.random((1, 3, 8, 12), dtype=np.float32),
        label=generator.integers(0, 3, (1, 3, 8, 12)).astype(np.uint8),
        entries=np.arange(1),
        event_ids=np.zeros((1, 3), np.int64),
    )


def parts(kind):
    torch.manual_seed(0)
    network = build(NETWORK)
    return network, build_optimizer(kind, network.parameters(), 1e-3), LossBalanceScheme.focal


def device(kind=OptimizerKind.adam):
    return EngineExecutor(*parts(kind), NUMBER_TYPES[Precision.float32], "cpu")


def plain(kind=OptimizerKind.adam):
    return EagerExecutor(*parts(kind), NUMBER_TYPES[Precision.float32], torch.device("cpu"))


@pytest.mark.slow
def test_an_executor_continues_from_the_state_of_another():
    first, whole, second = device(), device(), device()
    expected = [whole.train([batch(number)], 1e-3).loss for number in range(4)][2:]
    for number in range(2):
        first.train([batch(number)], 1e-3)
    second.restore(first.state())
    assert [second.train([batch(number)], 1e-3).loss for number in (2, 3)] == expected


@pytest.mark.slow
def test_the_placement_is_what_the_engine_recorded():
    trained = device()
    outcome = trained.train([batch(0)], 1e-3)
    assert outcome.seconds["compilation"] > 0
    placement = trained.placement()
    assert (placement.device, placement.backend, placement.tier, placement.updates) == (
        "cpu",
        "pilotage cpu",
        "graph",
        1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CAPTURED, key=lambda kind: kind.name))
def test_a_run_can_continue_on_another_device(kind):
    whole, first = plain(kind), device(kind)
    expected = [whole.train([batch(number)], 1e-3).loss for number in range(6)]
    for number in range(2):
        first.train([batch(number)], 1e-3)
    second, third = plain(kind), device(kind)
    second.restore(first.state())
    found = [second.train([batch(number)], 1e-3).loss for number in (2, 3)]
    third.restore(second.state())
    found += [third.train([batch(number)], 1e-3).loss for number in (4, 5)]
    assert found == pytest.approx(expected[2:], rel=1e-5)
