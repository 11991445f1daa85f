"""Accuracy and intersection over union, in the order of the torch trainer's ``KEYS``."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import Tensor

from cosmictagger.tensorflow.blocks import PLANES
from cosmictagger.training.metrics import NAMES


def predicted_classes(scores: Tensor) -> Tensor:
    """The class with the highest score per pixel, the first of equals: uint8 (M, H, W) from (M, H, W, 3)."""
    background, cosmic, neutrino = tf.unstack(scores, axis=-1)
    best = tf.cast(cosmic > background, tf.uint8)
    return tf.where(neutrino > tf.maximum(background, cosmic), tf.constant(2, tf.uint8), best)


def batch_metrics(prediction: Tensor, labels: Tensor) -> Tensor:
    """All metrics, from stacked predictions and labels (3 N, H, W)."""
    right, marked = prediction == labels, labels != 0
    cosmic = _union_ratio(prediction == 1, labels == 1)
    neutrino = _union_ratio(prediction == 2, labels == 2)
    accuracy = _count(right) / tf.cast(tf.size(labels[0]), tf.float32)
    non_background = _ratio(_count(right & marked), _count(marked))
    numbers = tf.stack((accuracy, non_background, cosmic, neutrino, 0.5 * (cosmic + neutrino)), axis=1)
    per_plane = tf.reduce_mean(tf.reshape(numbers, (PLANES, -1, len(NAMES))), 1)
    return tf.reshape(tf.concat((tf.reduce_mean(per_plane, 0, keepdims=True), per_plane), 0), (-1,))


def _union_ratio(one: Tensor, other: Tensor) -> Tensor:
    return _ratio(_count(one & other), _count(one | other))


def _count(mask: Tensor) -> Tensor:
    """Pixels of each image; counted as integers, which float32 sums cannot do for large images."""
    return tf.cast(tf.reduce_sum(tf.cast(mask, tf.int32), (1, 2)), tf.float32)


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return tf.where(whole > 0, part / tf.maximum(whole, 1.0), tf.ones_like(part))
