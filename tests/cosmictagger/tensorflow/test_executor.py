"""Training in TensorFlow against the torch trainer, and its files."""

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme, Precision
from cosmictagger.data.events import SparseBatch
from cosmictagger.tensorflow.executor import TensorflowExecutor
from cosmictagger.training.precision import NUMBER_TYPES
from cosmictagger.training.schedule import WarmUp

SCHEMES = [LossBalanceScheme.focal, LossBalanceScheme.light]


def executor(small, name="a21", **options):
    network = small.networks[name]
    return TensorflowExecutor(small.setup(network, **options), network)


def losses(trainer, small, steps, rate=lambda step: 1e-4):
    return [trainer.train([small.batch(step)], rate(step)).loss for step in steps]


def equal(one, other):
    """Whether two nested states are equal bit by bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("name", ["a21", "uresnet"])
def test_twenty_steps_give_the_losses_of_the_torch_trainer(small, name, scheme):
    """In float64: Adam divides gradients by their size, so that float32's rounding grows from step to step."""
    options = {"numbers": small.double, "loss_balance_scheme": scheme}
    rate = WarmUp(peak=3e-4, minibatch_size=2, events=20).rate
    wanted = losses(small.torch_executor(small.networks[name], **options), small, range(20), rate)
    found = losses(executor(small, name, **options), small, range(20), rate)
    assert found == pytest.approx(wanted, abs=1e-3)
    assert max(wanted) - min(wanted) > 0.01


def test_accumulated_batches_give_the_sum_of_gradients_and_the_mean_of_numbers(small):
    given = [small.batch(1), small.batch(2)]
    theirs, mine = small.torch_executor(small.networks["a21"]), executor(small)
    wanted, found = theirs.train(given, 1e-3), mine.train(given, 1e-3)
    assert found.loss == pytest.approx(wanted.loss, rel=1e-5)
    np.testing.assert_allclose(found.metrics.numpy(), wanted.metrics.numpy(), atol=1e-2)
    moments = [each.state()["optimizer"]["state"][0]["exp_avg"] for each in (mine, theirs)]
    torch.testing.assert_close(*moments, rtol=1e-2, atol=1e-6)


def test_a_resumed_run_equals_an_unbroken_one_bit_by_bit(small):
    unbroken = executor(small, name="uresnet")
    before = losses(unbroken, small, range(2))
    state = unbroken.state()
    after = losses(unbroken, small, range(2, 4))
    resumed = executor(small, name="uresnet")
    resumed.restore(state)
    assert losses(resumed, small, range(2, 4)) == after
    assert before != after
    assert equal(resumed.state(), unbroken.state())


def test_a_run_changes_frameworks_in_both_directions(small):
    network = small.networks["a21"]
    alone, theirs, mine = small.torch_executor(network), small.torch_executor(network), executor(small)
    wanted = losses(alone, small, range(6))
    first = losses(theirs, small, range(2))
    mine.restore(theirs.state())
    second = losses(mine, small, range(2, 4))
    theirs.restore(mine.state())
    assert first + second + losses(theirs, small, range(4, 6)) == pytest.approx(wanted, rel=1e-3)
    assert mine.state()["state_dict"].keys() == theirs.state()["state_dict"].keys()


def test_evaluation_equals_that_of_torch(small):
    network, given = small.networks["uresnet"], small.batch(7)
    wanted = small.torch_executor(network).evaluate(given)
    found = executor(small, "uresnet").evaluate(given)
    assert found.loss == pytest.approx(wanted.loss, rel=1e-5)
    assert found.prediction.dtype == wanted.prediction.dtype
    assert (found.prediction != wanted.prediction).float().mean() < 1e-3
    np.testing.assert_allclose(found.metrics.numpy(), wanted.metrics.numpy(), atol=1e-3)


def test_filled_pixels_give_the_same_step_as_images(small):
    dense = small.batch(3)
    index = np.flatnonzero(dense.image)
    charge, label = (each.reshape(-1)[index] for each in (dense.image, dense.label))
    sparse = SparseBatch(dense.image.shape, index, charge, label, dense.entries, dense.event_ids)
    assert executor(small).train([sparse], 1e-4).loss == executor(small).train([dense], 1e-4).loss


def test_bfloat16_activations_train_float32_weights(small):
    mine = executor(small, numbers=NUMBER_TYPES[Precision.bfloat16])
    found = losses(mine, small, range(2))
    assert found == pytest.approx(losses(executor(small), small, range(2)), rel=0.05)
    assert {values.dtype for values in mine.state()["state_dict"].values()} == {torch.float32, torch.int64}
    assert mine.placement().precision == "bfloat16 activations, float32 weights"


def test_the_placement_names_what_ran(small):
    mine = executor(small)
    mine.train([small.batch(1)], 1e-4)
    placement = mine.placement()
    assert placement.backend.startswith("tensorflow 2.")
    assert "CPU:0" in placement.device
    assert (placement.optimizer, placement.updates, placement.compiled) == ("Adam", 1, True)
    assert placement.compilation_seconds > 0.0
    assert executor(small, trains=False).placement().optimizer == "none"
