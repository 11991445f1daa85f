"""PopTorch's executor through our drop-in, against eager execution on a CPU."""

from functools import partial

import numpy as np
import pytest
import torch

import poptorch
from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.configuration.run import Run
from cosmictagger.data.events import PaddedBatch
from cosmictagger.devices.graphcore.executor import PopTorchExecutor
from cosmictagger.devices.graphcore.optimizer_state import SLOTS
from cosmictagger.devices.graphcore.options import options_for
from cosmictagger.devices.graphcore.stages import begin_stages
from cosmictagger.errors import ConfigurationError
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES


@pytest.fixture(autouse=True)
def pinned(monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", "graph")


@pytest.fixture
def ipu(small):
    """Builds executors that start with the same weights as the CPU's."""
    return partial(graphcore_device, small)


def graphcore_device(
    small, kind=OptimizerKind.adam, precision=Precision.float32, *, accumulation=1, replicas=1, stages=1
):
    net, numbers = small.network(precision), NUMBER_TYPES[precision]
    names = begin_stages(net, stages)
    run = Run(num_replicas=replicas)
    return PopTorchExecutor(
        net,
        build_optimizer(kind, net.parameters(), 1e-3, poptorch.optim),
        kind,
        LossBalanceScheme.focal,
        numbers,
        training_options=options_for(run, numbers, names, accumulation=accumulation, training=True),
        inference_options=options_for(run, numbers, names, training=False),
        accumulation=accumulation,
        replicas=replicas,
    )


@pytest.mark.slow
def test_steps_validation_and_placement_match_the_cpu(small, ipu, caplog):
    ours, theirs = ipu(), small.plain()
    outcome, expected = ours.train([small.batch(0)], 1e-3), theirs.train([small.batch(0)], 1e-3)
    assert outcome.loss == pytest.approx(expected.loss, rel=1e-5)
    assert outcome.seconds["compilation"] > 0
    torch.testing.assert_close(outcome.metrics, expected.metrics)
    for seed in (1, 2):
        one, other = ours.evaluate(small.batch(9)), theirs.evaluate(small.batch(9))
        assert one.loss == pytest.approx(other.loss, rel=1e-5)
        assert torch.equal(one.prediction, other.prediction)
        torch.testing.assert_close(one.metrics, other.metrics)
        assert ours.train([small.batch(seed)], 1e-2).loss == pytest.approx(
            theirs.train([small.batch(seed)], 1e-2).loss, rel=1e-5
        )
    placement = ours.placement()
    assert (placement.device, placement.tier, placement.compiled) == ("cpu", "graph", True)
    assert (placement.optimizer, placement.updates, placement.problems) == ("Adam", 3, ())
    assert placement.precision == "float32 activations, float32 weights"
    assert "The model is trained on the loss" not in caplog.text


def filled(batch):
    """The same batch as filled pixels, a few of them repeated."""
    count, size = len(batch.entries), batch.image[0].size
    index = np.tile(np.concatenate([np.arange(size), np.zeros(5)]).astype(np.int32), (count, 1))
    charge, label = (np.take_along_axis(each.reshape(count, -1), index, 1) for each in (batch.image, batch.label))
    return PaddedBatch(batch.image.shape, index, charge, label, batch.entries, batch.event_ids, batch.truths)


@pytest.mark.slow
@pytest.mark.parametrize("stages", [1, 2])
def test_dense_images_are_built_from_filled_pixels_on_the_device(small, ipu, stages):
    ours, theirs = ipu(stages=stages), small.plain()
    for number in range(3):
        batch, rate = small.batch(number), 1e-3 * (1 + number)
        assert ours.train([filled(batch)], rate).loss == pytest.approx(theirs.train([batch], rate).loss, rel=1e-5)
    one, other = ours.evaluate(filled(small.batch(9))), theirs.evaluate(small.batch(9))
    assert torch.equal(one.prediction, other.prediction)


@pytest.mark.long
@pytest.mark.parametrize(("accumulation", "replicas"), [(2, 1), (1, 2), (2, 2)])
def test_filled_pixels_are_divided_as_images_are(small, ipu, accumulation, replicas):
    sending, showing = (ipu(accumulation=accumulation, replicas=replicas) for _ in range(2))
    for number in range(2):
        batch = small.batch(number, events=2 * accumulation * replicas)
        assert sending.train([filled(batch)], 1e-3).loss == showing.train([batch], 1e-3).loss


@pytest.mark.slow
def test_a_run_can_change_between_devices(small, ipu):
    whole, first = small.plain(OptimizerKind.rmsprop), ipu(OptimizerKind.rmsprop)
    expected = small.losses(whole, 6)
    found = small.losses(first, 2)
    second, third = small.plain(OptimizerKind.rmsprop), ipu(OptimizerKind.rmsprop)
    second.restore(first.state())
    found += [second.train([small.batch(number)], 1e-3 * (1 + number)).loss for number in (2, 3)]
    third.restore(second.state())
    found += [third.train([small.batch(number)], 1e-3 * (1 + number)).loss for number in (4, 5)]
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("stages", [2, 4])
def test_a_network_in_stages_equals_the_whole_one(small, ipu, stages):
    assert small.losses(ipu(stages=stages), 2) == pytest.approx(small.losses(small.plain(), 2), rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("kind", SLOTS)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_accumulated_batches_are_summed_whatever_the_stages(small, ipu, kind, stages):
    accumulation = 2 * stages
    ours = ipu(kind, accumulation=accumulation, stages=stages)
    expected = small.losses(small.plain(kind), accumulation=accumulation)
    assert small.losses(ours, accumulation=accumulation, joined=True) == pytest.approx(expected, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("kind", SLOTS)
def test_a_restored_state_gives_the_same_losses(small, ipu, kind):
    first, whole, second = ipu(kind), ipu(kind), ipu(kind)
    expected = small.losses(whole, 4)[2:]
    small.losses(first, 2)
    second.restore(first.state())
    assert [second.train([small.batch(number)], 1e-3 * (1 + number)).loss for number in (2, 3)] == expected


@pytest.mark.long
@pytest.mark.parametrize("precision", [Precision.float16, Precision.mixed])
def test_half_precision_trains_and_is_reported_correctly(small, ipu, precision):
    device = ipu(precision=precision)
    assert small.losses(device, 4) == pytest.approx(small.losses(small.plain(), 4), rel=0.02)
    placement = device.placement()
    assert placement.precision.startswith(f"float16 activations, {str(NUMBER_TYPES[precision].weights)[6:]} weights")
    assert not placement.problems


@pytest.mark.long
def test_replicas_share_each_update(small, ipu):
    """Two replicas give the mean gradient of two halves, computed by torch."""
    ours, theirs = ipu(replicas=2), small.plain()
    half = [small.batch(0, events=2)]
    ours.train(half, 1e-3)
    net, step = theirs.network, theirs._step
    for part in (slice(0, 1), slice(1, 2)):
        image, label = torch.from_numpy(half[0].image[part]), torch.from_numpy(half[0].label[part])
        (step(image, label)[1] / 2).backward()
    theirs._optimizer.step()
    for name, tensor in net.named_parameters():
        torch.testing.assert_close(ours.state()["state_dict"][name], tensor.detach(), rtol=1e-4, atol=1e-6)
    assert ours.evaluate(small.batch(3)).prediction.shape == (2, 3, 8, 12)


@pytest.mark.parametrize("kind", [kind for kind in OptimizerKind if kind not in SLOTS])
def test_an_optimizer_that_poptorch_lacks_is_refused_by_name(small, ipu, kind):
    with pytest.raises(ConfigurationError, match=f"{kind.name} is not available on an IPU"):
        ipu(kind)
