"""Gradients and statistics of one batch, against torch in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import DownSampling, LossBalanceScheme, UpSampling
from cosmictagger.tensorflow.layout import to_torch
from cosmictagger.tensorflow.network import UResNet2D
from cosmictagger.tensorflow.step import Steps
from cosmictagger.training.metrics import batch_metrics, predicted_classes

RESIZING = {"downsampling": DownSampling.convolutional, "upsampling": UpSampling.convolutional}


def light_loss(scores, labels):
    """The loss of the scheme light, written plainly: a weighted mean for each plane, summed."""
    weights = torch.tensor([1.0, 1.5, 10.0], dtype=scores.dtype)
    planes = zip(scores.chunk(3), labels.chunk(3), strict=True)
    return sum(torch.nn.functional.cross_entropy(each, wanted.long(), weight=weights) for each, wanted in planes)


@pytest.mark.parametrize("options", [{}, RESIZING], ids=["pooling", "resizing"])
@pytest.mark.parametrize("name", ["a21", "uresnet"])
def test_gradients_statistics_and_metrics_equal_those_of_torch_in_float64(small, name, options):
    network = replace(small.networks[name], **options)
    module = small.network(network, torch.float64).train()
    twin, batch = UResNet2D.of(network, module, "float64"), small.batch(2)
    found = Steps(twin, LossBalanceScheme.light).gradients(batch.image, batch.label)

    scores = module.stacked(torch.from_numpy(batch.image).double())
    labels = torch.from_numpy(batch.label).transpose(0, 1).flatten(0, 1)
    loss = light_loss(scores, labels)
    loss.backward()
    assert float(found.loss) == pytest.approx(float(loss.detach()), rel=1e-10)
    wanted_metrics = batch_metrics(predicted_classes(scores.detach()), labels)
    np.testing.assert_allclose(found.metrics.numpy(), wanted_metrics.numpy(), rtol=1e-6)
    for (name_, parameter), gradient in zip(module.named_parameters(), found.gradients, strict=True):
        distance = (to_torch(gradient.numpy()) - parameter.grad).norm()
        assert distance <= 1e-8 * (1e-3 + parameter.grad.norm()), name_
    after = twin.state_dict()
    for key, values in module.named_buffers():
        torch.testing.assert_close(after[key], values, rtol=1e-9, atol=1e-12, msg=key)


def test_a_graph_is_traced_once_for_each_shape(small):
    network = small.networks["a21"]
    steps = Steps(UResNet2D.of(network, small.network(network)), LossBalanceScheme.focal)
    batch = small.batch(1)
    assert steps.trace_evaluation(batch.image, batch.label) > 0.0
    assert steps.trace_evaluation(batch.image, batch.label) == 0.0
    assert steps.trace_evaluation(batch.image[:1], batch.label[:1]) > 0.0


def test_evaluating_changes_no_statistics(small):
    network = small.networks["a21"]
    twin, batch = UResNet2D.of(network, small.network(network)), small.batch(1)
    before = twin.state_dict()
    judged = Steps(twin, LossBalanceScheme.focal).evaluate(batch.image, batch.label)
    assert judged.prediction.shape == batch.label.shape
    assert all(torch.equal(before[name], values) for name, values in twin.state_dict().items())
