"""Network, loss and metrics as graphs of TensorFlow."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow import Tensor

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.data.events import Array
from cosmictagger.tensorflow.blocks import PLANES
from cosmictagger.tensorflow.loss import balanced_loss
from cosmictagger.tensorflow.metrics import batch_metrics, predicted_classes
from cosmictagger.tensorflow.network import UResNet2D, stack_planes


class Gradients(NamedTuple):
    """What one batch asks for."""

    loss: Tensor
    metrics: Tensor
    gradients: list[Tensor]
    """In the order of the network's parameters."""


class Judgement(NamedTuple):
    """The prediction for a batch, compared with its labels."""

    prediction: Tensor
    """The class of each pixel, uint8 (N, 3 planes, H, W)."""

    metrics: Tensor
    loss: Tensor


class Steps:
    """The graphs of one network: traced for each shape of a batch when they first meet it."""

    def __init__(self, network: UResNet2D, scheme: LossBalanceScheme) -> None:
        self._network, self._scheme = network, scheme
        self._training, self._evaluation = (
            tf.function(self._gradients, autograph=False),
            tf.function(self._judge, autograph=False),
        )
        self._traced: set[tuple[str, tuple[int, ...]]] = set()

    def gradients(self, image: Array, label: Array) -> Gradients:
        """Run a batch forward and backward; running statistics are updated, weights are not."""
        return Gradients(*self._training(tf.constant(image), tf.constant(label)))

    def evaluate(self, image: Array, label: Array) -> Judgement:
        """Predict with the running statistics, and compare."""
        return Judgement(*self._evaluation(tf.constant(image), tf.constant(label)))

    def trace_gradients(self, image: Array, label: Array) -> float:
        """Build the graph of `gradients` for a batch; returns the seconds it took, 0 if there is one."""
        return self._trace("training", self._training, image, label)

    def trace_evaluation(self, image: Array, label: Array) -> float:
        """Build the graph of `evaluate` for a batch; returns the seconds it took, 0 if there is one."""
        return self._trace("evaluation", self._evaluation, image, label)

    def _trace(self, kind: str, graph: Any, image: Array, label: Array) -> float:
        if (kind, image.shape) in self._traced:
            return 0.0
        self._traced.add((kind, image.shape))
        start = time.perf_counter()
        graph.get_concrete_function(tf.constant(image), tf.constant(label))
        return time.perf_counter() - start

    def _gradients(self, image: Tensor, label: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        labels = _stacked_labels(label)
        parameters = list(self._network.parameters.values())
        with tf.GradientTape() as tape:
            scores, statistics = self._network.scores(image, training=True)
            loss = balanced_loss(scores, labels, self._scheme)
        # The bias of a convolution that is normalised has no influence: its gradient is zero.
        gradients = tape.gradient(loss, parameters, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        for name, values in statistics.items():
            self._network.statistics[name].assign(values)
        return loss, batch_metrics(predicted_classes(scores), labels), gradients

    def _judge(self, image: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        labels = _stacked_labels(label)
        scores, _ = self._network.scores(image, training=False)
        prediction = predicted_classes(scores)
        by_event = tf.stack(tf.split(prediction, PLANES), 1)
        return by_event, batch_metrics(prediction, labels), balanced_loss(scores, labels, self._scheme)


def _stacked_labels(label: Tensor) -> Tensor:
    """(3 N, H, W), plane by plane."""
    # oneDNN transposes no bytes on many processors, and prints an error before TensorFlow does it otherwise.
    return tf.cast(stack_planes(tf.cast(label, tf.int32))[..., 0], tf.uint8)
