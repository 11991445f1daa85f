"""The levels of the U-shaped network."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import Tensor

from cosmictagger.configuration.choices import Connection, DownSampling, UpSampling
from cosmictagger.configuration.network import Network
from cosmictagger.tensorflow.blocks import (
    PLANES,
    ForwardPass,
    block,
    doubled_by_convolution,
    doubled_by_interpolation,
)


def level(run: ForwardPass, network: Network, name: str, depth: int, x: Tensor) -> Tensor:
    """A level and all levels below it; the skip connection starts before the blocks of the way down."""
    if depth == 0:
        return _deepest(run, network, f"{name}.main_module", x)
    down = series(run, network, f"{name}.down_blocks", x, network.blocks_per_layer)
    below = level(run, network, f"{name}.main_module", depth - 1, _halved(run, network, f"{name}.downsample", down))
    joined = _joined(run, network, f"{name}.connection", _doubled(run, network, f"{name}.upsample", below), x)
    return series(run, network, f"{name}.up_blocks", joined, network.blocks_per_layer)


def series(run: ForwardPass, network: Network, name: str, x: Tensor, blocks: int, planes: int = PLANES) -> Tensor:
    """A sequence of blocks, residual or plain."""
    for number in range(blocks):
        own = f"{name}.blocks.{number}"
        if network.residual:
            inner = block(run, f"{own}.convolution_1", x, planes=planes)
            x = block(run, f"{own}.convolution_2", inner, planes=planes, residual=x)
        else:
            x = block(run, own, x, planes=planes)
    return x


def _deepest(run: ForwardPass, network: Network, name: str, x: Tensor) -> Tensor:
    """Join the planes as channels, convolve them and split them again; with block_concat they stay separate."""
    joins = not network.block_concat
    planes = 1 if joins else PLANES
    y = tf.concat(tf.split(x, PLANES), -1) if joins else x
    y = block(run, f"{name}.bottleneck", y, planes=planes)
    y = series(run, network, f"{name}.blocks", y, network.blocks_deepest_layer, planes)
    y = block(run, f"{name}.unbottleneck", y, planes=planes)
    return tf.concat(tf.split(y, PLANES, axis=-1), 0) if joins else y


def _halved(run: ForwardPass, network: Network, name: str, x: Tensor) -> Tensor:
    match network.downsampling:
        case DownSampling.max_pooling:
            return block(run, f"{name}.bottleneck", tf.nn.max_pool2d(x, 2, 2, "VALID"))
        case DownSampling.convolutional:
            return block(run, name, x, stride=2)


def _doubled(run: ForwardPass, network: Network, name: str, x: Tensor) -> Tensor:
    match network.upsampling:
        case UpSampling.interpolation:
            return block(run, f"{name}.bottleneck", x, convolution=doubled_by_interpolation)
        case UpSampling.convolutional:
            return block(run, name, x, convolution=doubled_by_convolution)


def _joined(run: ForwardPass, network: Network, name: str, x: Tensor, skip: Tensor) -> Tensor:
    match network.connections:
        case Connection.concat:
            return block(run, f"{name}.bottleneck", tf.concat((x, skip), -1))
        case Connection.sum:
            return x + skip
        case Connection.none:
            return x
