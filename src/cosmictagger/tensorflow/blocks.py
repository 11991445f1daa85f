"""Blocks of convolution, normalisation and activation, found by the names of their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import tensorflow as tf
from tensorflow import Tensor

from cosmictagger.tensorflow.plane_norm import EPSILON, activated, normalize_planes, precise

PLANES = 3

MOMENTUM = 0.1
"""The share of a batch in the running statistics."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForwardPass:
    """One pass of a batch through the network."""

    weights: Mapping[str, Tensor]
    """Parameters and running statistics, by torch's names."""

    training: bool
    updates: dict[str, Tensor] = field(default_factory=dict)
    """New running statistics, written by the blocks of a training pass."""


def convolved(run: ForwardPass, name: str, x: Tensor, *, stride: int = 1, biased: bool = True) -> Tensor:
    """A convolution that keeps the size of images, or halves it."""
    kernel = tf.cast(run.weights[f"{name}.weight"], x.dtype)
    y = tf.nn.conv2d(x, kernel, stride, "SAME" if stride == 1 else "VALID")
    return with_bias(run, name, y) if biased else y


def doubled_by_convolution(run: ForwardPass, name: str, x: Tensor, *, biased: bool = True) -> Tensor:
    """A transposed convolution to twice the size."""
    kernel = tf.cast(run.weights[f"{name}.weight"], x.dtype)
    events, height, width, _ = tf.unstack(tf.shape(x))
    size = (events, 2 * height, 2 * width, tf.shape(kernel)[2])
    y = tf.nn.conv2d_transpose(x, kernel, size, 2, "VALID")
    return with_bias(run, name, y) if biased else y


def doubled_by_interpolation(run: ForwardPass, name: str, x: Tensor, *, biased: bool = True) -> Tensor:
    """A 1x1 convolution, then bilinear interpolation to twice the size; both are linear, and this order is cheaper."""
    y = convolved(run, name, x, biased=biased)
    return _doubled(_doubled(y, 1), 2)


def with_bias(run: ForwardPass, name: str, y: Tensor) -> Tensor:
    """Add the bias of a convolution, if it has one."""
    bias = run.weights.get(f"{name}.bias")
    return y if bias is None else y + tf.cast(bias, y.dtype)


def _doubled(x: Tensor, axis: int) -> Tensor:
    """Twice the size along an axis: each new pixel lies a quarter of a pixel beside an old one."""
    size = x.shape[axis]
    outer = (slice(None),) * axis
    before = tf.concat((x[(*outer, slice(0, 1))], x[(*outer, slice(0, size - 1))]), axis)
    after = tf.concat((x[(*outer, slice(1, size))], x[(*outer, slice(size - 1, size))]), axis)
    pairs = tf.stack((0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after), axis + 1)
    shape = [-1, *x.shape[1:]]
    shape[axis] = 2 * size
    return tf.reshape(pairs, shape)


def block(
    run: ForwardPass,
    name: str,
    x: Tensor,
    *,
    convolution: Callable[..., Tensor] = convolved,
    planes: int = PLANES,
    residual: Tensor | None = None,
    **options: int,
) -> Tensor:
    """Convolution, normalisation and activation; a residual is added before the activation."""
    has_norm = f"{name}.norm.weight" in run.weights
    # A bias cancels in values that a batch normalises; it only moves the mean.
    y = convolution(run, f"{name}.conv", x, biased=not (has_norm and run.training), **options)
    if has_norm and run.training:
        return _normalized(run, name, y, residual, planes)
    if has_norm:
        y = _with_running_statistics(run, f"{name}.norm", y)
    return activated(y if residual is None else y + residual)


def _normalized(run: ForwardPass, name: str, x: Tensor, residual: Tensor | None, planes: int) -> Tensor:
    norm, bias = f"{name}.norm", run.weights.get(f"{name}.conv.bias")
    y, mean, variance = normalize_planes(
        x, run.weights[f"{norm}.weight"], run.weights[f"{norm}.bias"], residual, planes
    )
    count = tf.cast(tf.reduce_prod(tf.shape(x)[:3]) // planes, variance.dtype)
    shifted = mean if bias is None else mean + bias
    unbiased = variance * (count / tf.maximum(count - 1.0, 1.0))
    for kind, values in (("running_mean", shifted), ("running_var", unbiased)):
        running = run.weights[f"{norm}.{kind}"]
        for plane in range(planes):
            running += MOMENTUM * (values[plane] - running)
        run.updates[f"{norm}.{kind}"] = running
    counted = f"{norm}.num_batches_tracked"
    run.updates[counted] = run.weights[counted] + planes
    return y


def _with_running_statistics(run: ForwardPass, norm: str, x: Tensor) -> Tensor:
    """Normalise as in evaluation."""
    mean, variance = run.weights[f"{norm}.running_mean"], run.weights[f"{norm}.running_var"]
    scale = run.weights[f"{norm}.weight"] * tf.math.rsqrt(variance + EPSILON)
    return tf.cast((tf.cast(x, precise(x.dtype)) - mean) * scale + run.weights[f"{norm}.bias"], x.dtype)
