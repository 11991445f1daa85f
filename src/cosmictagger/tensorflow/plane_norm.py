"""Batch normalisation of stacked planes, with the residual sum and the activation, as in the torch network.

The three planes of an event are stacked along the batch, and each plane has its own statistics. Sums go over columns
first and then over the rows: one float32 sum over a whole image would lose digits.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from tensorflow import Tensor

LEAK = 0.01
"""Slope of the activation for negative values."""

EPSILON = 1e-5


def normalize_planes(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, planes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """``leaky_relu((x - mean) / sqrt(variance + eps) * weight + bias + residual)``, and both statistics by plane.

    ``x`` is (planes * N, H, W, C). The gradient is written out: nothing but ``x``, the result and the statistics is
    kept for it, and none flows through the statistics that are returned.
    """
    given = (x, weight, bias) if residual is None else (x, weight, bias, residual)
    y, mean, variance = tf.custom_gradient(lambda *tensors: _normalize(planes, *tensors))(*given)
    return y, mean, variance


def _normalize(
    planes: int, x: Tensor, weight: Tensor, bias: Tensor, *residual: Tensor
) -> tuple[tuple[Tensor, Tensor, Tensor], Callable[..., tuple[Tensor, ...]]]:
    kind, wide = precise(x.dtype), _by_plane(x, planes)
    count = tf.cast(tf.size(wide) // (planes * tf.shape(x)[-1]), kind)
    mean = _sums(wide) / count
    variance = _sums(tf.square(wide - _spread(mean))) / count
    inverse = tf.math.rsqrt(variance + EPSILON)
    normal = tf.reshape((wide - _spread(mean)) * _spread(inverse * weight) + bias, tf.shape(x))
    for each in residual:
        normal += tf.cast(each, kind)
    y = tf.cast(activated(normal), x.dtype)

    def gradient(upstream: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        upstream = tf.cast(upstream, kind)
        before = tf.where(y > 0, upstream, LEAK * upstream)
        into, centered = _by_plane(before, planes), _by_plane(x, planes) - _spread(mean)
        into_bias, into_weight = _sums(into), _sums(into * centered) * inverse
        slope = _spread(into_weight * inverse / count)
        into_x = _spread(weight * inverse) * (into - _spread(into_bias / count) - centered * slope)
        found = (tf.cast(tf.reshape(into_x, tf.shape(x)), x.dtype), tf.reduce_sum(into_weight, 0))
        return (*found, tf.reduce_sum(into_bias, 0), *(tf.cast(before, each.dtype) for each in residual))

    return (y, mean, variance), gradient


def activated(x: Tensor) -> Tensor:
    """Multiply negative values by the slope."""
    # TensorFlow's operation keeps the slope in float32, which float64 would notice.
    return tf.where(x > 0, x, LEAK * x) if x.dtype == tf.float64 else tf.nn.leaky_relu(x, LEAK)


def precise(kind: tf.DType) -> tf.DType:
    """The type of sums and statistics: float32, or that of values which are even more precise."""
    return tf.float64 if kind == tf.float64 else tf.float32


def _by_plane(x: Tensor, planes: int) -> Tensor:
    """(planes, rows of all events, columns, channels), in a precise type."""
    shape = tf.shape(x)
    return tf.reshape(tf.cast(x, precise(x.dtype)), (planes, -1, shape[2], shape[3]))


def _sums(values: Tensor) -> Tensor:
    """The sum over the pixels of each plane, (planes, channels)."""
    return tf.reduce_sum(tf.reduce_sum(values, 2), 1)


def _spread(numbers: Tensor) -> Tensor:
    """A number for each plane and channel, ready to meet pixels."""
    return numbers[:, tf.newaxis, tf.newaxis, :]
