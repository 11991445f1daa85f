"""Small networks in both frameworks, and batches for them.

Without TensorFlow only `test_device.py` is collected, and it says in one line how to get it.
"""

import os
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme, Precision
from cosmictagger.configuration.mode import Optimizer
from cosmictagger.configuration.network import A21, URESNET
from cosmictagger.data.events import Batch
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.devices.setup import NetworkSetup
from cosmictagger.networks.uresnet import build
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.precision import NUMBER_TYPES, NumberTypes

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if find_spec("tensorflow") is None:
    collect_ignore_glob = ["test_[!d]*.py"]

SMALLER = {"depth": 2, "n_initial_filters": 4, "bottleneck_deepest": 8, "blocks_deepest_layer": 1}
NETWORKS = {"a21": replace(A21, **SMALLER), "uresnet": replace(URESNET, blocks_final=1, **SMALLER)}
DOUBLE = NumberTypes(activations=torch.float64, weights=torch.float64)


def batch(seed, events=2, size=(24, 40)):
    """Sparse charge with tracks of both kinds."""
    generator = np.random.default_rng(seed)
    shape = (events, 3, *size)
    filled = generator.random(shape) < 0.2
    image = np.where(filled, generator.gamma(2.0, 2.0, shape), 0.0).astype(np.float32)
    label = np.where(filled, generator.integers(0, 3, shape), 0).astype(np.uint8)
    return Batch(image, label, np.arange(events), np.zeros((events, 3), np.int64))


def torch_network(network, kind=torch.float32):
    """A network whose statistics and biases are not those of a new one."""
    torch.manual_seed(0)
    built = build(network, kind)
    with torch.no_grad():
        for name, tensor in built.state_dict().items():
            if name.endswith(("bias", "running_mean")):
                tensor.normal_(std=0.1)
            elif name.endswith(("norm.weight", "running_var")):
                tensor.uniform_(0.5, 1.5)
    return built.to(kind)


def setup(network, *, numbers=None, trains=True, kind=None, processes=None, **options):
    numbers = numbers or NUMBER_TYPES[Precision.float32]
    return NetworkSetup(
        network=torch_network(network, numbers.weights),
        numbers=numbers,
        settings=Optimizer(**options),
        processes=processes or Processes(),
        trains=trains,
    )


def torch_executor(network, **options):
    given = setup(network, **options)
    return EagerExecutor(given.network, given.optimizer(), given.scheme, given.numbers, torch.device("cpu"))


@pytest.fixture(scope="session")
def small():
    """The functions above, by name."""
    return SimpleNamespace(
        networks=NETWORKS,
        double=DOUBLE,
        schemes=LossBalanceScheme,
        batch=batch,
        network=torch_network,
        setup=setup,
        torch_executor=torch_executor,
    )
