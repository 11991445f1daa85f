"""The loss equals the torch trainer's."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.tensorflow.loss import balanced_loss
from cosmictagger.training.loss import BalancedLoss


@pytest.mark.parametrize(
    ("kind", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)], ids=["single", "double"]
)
@pytest.mark.parametrize("scheme", LossBalanceScheme, ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("classes", [3, 2], ids=["all classes", "no neutrino"])
def test_loss_and_gradient_equal_those_of_torch(scheme, classes, kind, tolerance):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(6, 3, 10, 8, generator=generator).to(kind).mul(4).requires_grad_()
    labels = torch.randint(0, classes, (6, 10, 8), generator=generator, dtype=torch.uint8)
    wanted = BalancedLoss(scheme)(scores, labels)
    wanted.backward()
    with tf.GradientTape() as tape:
        given = tf.Variable(scores.detach().permute(0, 2, 3, 1).numpy())
        found = balanced_loss(given, labels.numpy(), scheme)
    assert float(found) == pytest.approx(float(wanted.detach()), rel=tolerance)
    gradient = tape.gradient(found, given).numpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(gradient, scores.grad.numpy(), rtol=0, atol=tolerance)
