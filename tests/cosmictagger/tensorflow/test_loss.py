"""The loss equals the torch trainer's."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.tensorflow.loss import balanced_loss
from cosmictagger.training.loss import BalancedLoss


@pytest.mark.parametrize("scheme", LossBalanceScheme, ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("classes", [3, 2], ids=["all classes", "no neutrino"])
def test_loss_and_gradient_equal_those_of_torch(scheme, classes):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(6, 3, 10, 8, generator=generator).mul(4).requires_grad_()
    labels = torch.randint(0, classes, (6, 10, 8), generator=generator, dtype=torch.uint8)
    wanted = BalancedLoss(scheme)(scores, labels)
    wanted.backward()
    with tf.GradientTape() as tape:
        given = tf.Variable(scores.detach().permute(0, 2, 3, 1).numpy())
        found = balanced_loss(given, labels.numpy(), scheme)
    assert float(found) == pytest.approx(float(wanted.detach()), rel=1e-6)
    gradient = tape.gradient(found, given).numpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(gradient, scores.grad.numpy(), atol=1e-6)
