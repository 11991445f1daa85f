"""Training in TensorFlow against the torch trainer, and its files."""

import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.data.events import SparseBatch
from cosmictagger.tensorflow.executor import TensorflowExecutor
from cosmictagger.training.precision import NUMBER_TYPES
from cosmictagger.training.schedule import Schedule

SCHEMES = [LossBalanceScheme.focal, LossBalanceScheme.light]


def executor(small, name="a21", **options):
    network = small.networks[name]
    return TensorflowExecutor(small.setup(network, **options), network)


def losses(trainer, small, steps, rates):
    return [trainer.train([small.batch(step)], rates(step)).loss for step in steps]


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("name", ["a21", "uresnet"])
def test_twenty_steps_give_the_losses_of_the_torch_trainer(small, name, scheme):
    """In float64: Adam divides gradients by their size, so float32's rounding grows from step to step."""
    options = {"numbers": small.double, "loss_balance_scheme": scheme}
    rates = Schedule(peak=3e-4, minibatch_size=2, events=20).rate
    wanted = losses(small.torch_executor(small.networks[name], **options), small, range(20), rates)
    found = losses(executor(small, name, **options), small, range(20), rates)
    assert found == pytest.approx(wanted, abs=1e-4)
    assert wanted[-1] != pytest.approx(wanted[0], abs=1e-2)
