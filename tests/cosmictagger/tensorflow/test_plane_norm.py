"""Normalisation of stacked planes, against torch's batch normalisation of each plane."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from cosmictagger.tensorflow.plane_norm import normalize_planes


@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize("with_residual", [False, True])
def test_values_statistics_and_gradients_equal_those_of_torch(planes, with_residual):
    generator = torch.Generator().manual_seed(1)
    x, residual = (torch.randn(6, 4, 5, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    weight, bias = (torch.randn(4, generator=generator, dtype=torch.float64) for _ in range(2))
    given = [each.requires_grad_() for each in (x, weight, bias, *([residual] if with_residual else []))]
    parts = [torch.nn.functional.batch_norm(part, None, None, weight, bias, True) for part in x.chunk(planes)]
    whole = torch.cat(parts) + (residual if with_residual else 0.0)
    wanted = torch.nn.functional.leaky_relu(whole, 0.01)
    upstream = torch.randn(wanted.shape, generator=generator, dtype=torch.float64)
    wanted.backward(upstream)

    last = [tf.Variable(_channels_last(each)) for each in given]
    with tf.GradientTape() as tape:
        y, mean, variance = normalize_planes(*map(tf.convert_to_tensor, last[:3]), *last[3:] or [None], planes)
        total = tf.reduce_sum(y * _channels_last(upstream))
    np.testing.assert_allclose(y.numpy(), _channels_last(wanted), atol=1e-10)
    for number, part in enumerate(x.detach().chunk(planes)):
        np.testing.assert_allclose(mean[number].numpy(), part.mean((0, 2, 3)).numpy(), atol=1e-12)
        np.testing.assert_allclose(variance[number].numpy(), part.var((0, 2, 3), correction=0).numpy(), atol=1e-12)
    for mine, theirs in zip(tape.gradient(total, last), given, strict=True):
        np.testing.assert_allclose(mine.numpy(), _channels_last(theirs.grad), atol=1e-9)


def test_a_mean_far_from_zero_costs_few_digits():
    values = torch.randn(3, 2, 64, 256, generator=torch.Generator().manual_seed(2)) + 100.0
    _, mean, variance = normalize_planes(_channels_last(values), np.ones(2, "f"), np.zeros(2, "f"), None, 3)
    np.testing.assert_allclose(mean.numpy(), values.double().mean((2, 3)).numpy(), rtol=1e-6)
    np.testing.assert_allclose(variance.numpy(), values.double().var((2, 3), correction=0).numpy(), rtol=1e-5)


def _channels_last(values):
    array = values.detach().numpy()
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
