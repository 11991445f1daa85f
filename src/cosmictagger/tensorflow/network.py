"""The 2D network with TensorFlow's variables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf
import torch
from tensorflow import Tensor, Variable

from cosmictagger.configuration.network import Network
from cosmictagger.tensorflow.blocks import PLANES, ForwardPass, block, convolved
from cosmictagger.tensorflow.layout import to_tensorflow, to_torch
from cosmictagger.tensorflow.levels import level, series


class UResNet2D:
    """Three planes of charge in, three planes of class scores out: the torch network's weights, names and results."""

    def __init__(
        self,
        network: Network,
        weights: Mapping[str, torch.Tensor],
        parameters: Collection[str],
        compute_type: str = "float32",
    ) -> None:
        self._network, self._type = network, tf.as_dtype(compute_type)
        self.parameters = {name: _variable(name, weights[name], trainable=True) for name in parameters}
        """What is trained, by torch's names and in torch's order."""
        self.statistics = {
            name: _variable(name, values, trainable=False)
            for name, values in weights.items()
            if name not in self.parameters
        }
        """Running statistics of normalisation."""

    @classmethod
    def of(cls, network: Network, module: torch.nn.Module, compute_type: str = "float32") -> UResNet2D:
        """The same network as a torch module, with copies of its weights."""
        names = [name for name, _ in module.named_parameters()]
        return cls(network, module.state_dict(), names, compute_type)

    def scores(self, image: Tensor, *, training: bool) -> tuple[Tensor, dict[str, Tensor]]:
        """Scores of all planes, plane by plane along the batch (3 N, H, W, 3 classes), and new running statistics."""
        variables = {**self.parameters, **self.statistics}
        run = ForwardPass(
            weights={name: tf.convert_to_tensor(each) for name, each in variables.items()}, training=training
        )
        network = self._network
        x = block(run, "initial_convolution", stack_planes(tf.cast(image, self._type)))
        x = level(run, network, "net_core", network.depth, x)
        x = series(run, network, "final_layer", x, network.blocks_final)
        return convolved(run, "bottleneck", x), run.updates

    def logits(self, image: Tensor, *, training: bool = False) -> tuple[Tensor, ...]:
        """Scores of each plane in torch's form, (N, 3 classes, H, W)."""
        stacked, _ = self.scores(image, training=training)
        return tuple(tf.split(tf.transpose(stacked, (0, 3, 1, 2)), PLANES))

    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take over the weights of a torch network of the same structure."""
        for name, variable in {**self.parameters, **self.statistics}.items():
            variable.assign(to_tensorflow(weights[name]))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All weights as a torch network holds them."""
        return {name: to_torch(each.numpy()) for name, each in {**self.parameters, **self.statistics}.items()}


def stack_planes(image: Tensor) -> Tensor:
    """(N, 3, H, W) as (3 N, H, W, 1), plane by plane."""
    _, _, height, width = image.shape
    return tf.reshape(tf.transpose(image, (1, 0, 2, 3)), (-1, height, width, 1))


def _variable(name: str, values: torch.Tensor, *, trainable: bool) -> Any:
    return Variable(to_tensorflow(values), trainable=trainable, name=name.replace(".", "_"))
