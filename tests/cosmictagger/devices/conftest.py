"""A small network and batches for it, for tests of every device."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.configuration.network import A21
from cosmictagger.data.events import Batch, Truths
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.networks.uresnet import build
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES

NETWORK = replace(A21, depth=2, n_initial_filters=4, bottleneck_deepest=6, blocks_deepest_layer=1, blocks_per_layer=1)
FOCAL = LossBalanceScheme.focal


def batch(seed, events=2):
    generator = np.random.default_rng(seed)
    size = (events, 3, 8, 12)
    return Batch(
        image=generator.random(size, dtype=np.float32),
        label=generator.integers(0, 3, size).astype(np.uint8),
        entries=np.arange(events),
        event_ids=np.zeros((events, 3), np.int64),
        truths=Truths(generator.integers(0, 4, events), generator.uniform(0, 8, (events, 3, 2)).astype(np.float32)),
    )


def network(precision=Precision.float32, kind=NETWORK, **options):
    torch.manual_seed(0)
    numbers = NUMBER_TYPES[precision]
    return build(kind, numbers.activations, **options).to(numbers.weights)


def plain(kind=OptimizerKind.adam, precision=Precision.float32, device="cpu", **options):
    net = network(precision)
    optimizer = build_optimizer(kind, net.parameters(), 1e-3)
    return EagerExecutor(net, optimizer, FOCAL, NUMBER_TYPES[precision], torch.device(device), **options)


def losses(device, count=3, *, accumulation=1, joined=False):
    """Losses of some updates with changing rates; ``joined`` passes accumulated batches as one."""
    found = []
    for number in range(count):
        batches = [batch(number * accumulation + extra) for extra in range(accumulation)]
        if joined:
            batches = [together(batches)]
        found.append(device.train(batches, 1e-3 * (1 + number)).loss)
    return found


def together(batches):
    whole = {
        name: np.concatenate([getattr(each, name) for each in batches])
        for name in ("image", "label", "entries", "event_ids")
    }
    return Batch(**whole)


@pytest.fixture(scope="session")
def small():
    """The functions above, by name."""
    return SimpleNamespace(batch=batch, network=network, plain=plain, losses=losses)
