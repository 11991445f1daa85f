"""The loss of the torch trainer: cross entropy weighted by pixel, summed over the planes."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import Tensor

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.tensorflow.blocks import PLANES
from cosmictagger.tensorflow.plane_norm import precise
from cosmictagger.training.loss import EVEN, LIGHT


def balanced_loss(scores: Tensor, labels: Tensor, scheme: LossBalanceScheme) -> Tensor:
    """The sum of the planes' losses, each ``sum(w * entropy) / sum(w)`` with weights that carry no gradient.

    Scores are (3 N, H, W, 3 classes), labels (3 N, H, W), both stacked plane by plane.
    """
    scores, labels = tf.cast(scores, precise(scores.dtype)), tf.cast(labels, tf.int32)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
    weights = tf.stop_gradient(_pixel_weights(scheme, entropy, labels))
    return tf.reduce_sum(_by_plane(weights * entropy) / _by_plane(weights))


def _pixel_weights(scheme: LossBalanceScheme, entropy: Tensor, labels: Tensor) -> Tensor:
    match scheme:
        case LossBalanceScheme.focal:
            return tf.square(1.0 - tf.exp(-entropy))
        case LossBalanceScheme.light:
            return tf.gather(tf.constant(LIGHT, entropy.dtype), labels)
        case LossBalanceScheme.even:
            return tf.add_n([_even(tf.cast(labels == kind, entropy.dtype)) for kind in range(len(LIGHT))])
        case LossBalanceScheme.none:
            return tf.ones_like(entropy)


def _even(chosen: Tensor) -> Tensor:
    """The weight of a class in the pixels that have it, by its number of pixels in the plane."""
    weights = EVEN / (_by_plane(chosen) + 1.0)
    return chosen * tf.repeat(weights, tf.shape(chosen)[0] // PLANES)[:, tf.newaxis, tf.newaxis]


def _by_plane(values: Tensor) -> Tensor:
    """The sum over the pixels of each plane; by columns first, since one long float32 sum would lose digits."""
    return tf.reduce_sum(tf.reshape(tf.reduce_sum(values, 2), (PLANES, -1)), 1)
