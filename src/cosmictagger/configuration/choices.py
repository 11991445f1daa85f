"""The values of options; each can also be given by its number."""

from __future__ import annotations

from enum import Enum


class ComputeMode(Enum):
    """The kind of device."""

    CPU = 0
    GPU = 1
    DPCPP = 2
    XPU = 3
    HPU = 4
    IPU = 5


class Precision(Enum):
    """The types of activations and weights; only float16 changes the weights and the optimizer."""

    float32 = 0
    mixed = 1
    bfloat16 = 2
    float16 = 3


class ModeKind(Enum):
    """What a run does."""

    train = 0
    iotest = 1
    inference = 2
    visualize = 3


class LossBalanceScheme(Enum):
    """How the loss weights pixels."""

    none = 0
    light = 1
    even = 2
    focal = 3


class OptimizerKind(Enum):
    """The optimizer."""

    adam = 0
    rmsprop = 1


class DataFormat(Enum):
    """The position of the planes in a batch."""

    channels_last = 0
    channels_first = 1


class DistributedMode(Enum):
    """What exchanges gradients between processes."""

    DDP = 0
    horovod = 1


class Connection(Enum):
    """How skip connections join the decoder."""

    concat = 0
    sum = 1
    none = 2


class GrowthRate(Enum):
    """How the number of channels grows from level to level."""

    multiplicative = 0
    additive = 1


class DownSampling(Enum):
    """How a level halves the image size."""

    convolutional = 0
    max_pooling = 1


class UpSampling(Enum):
    """How a level doubles the image size."""

    convolutional = 0
    interpolation = 1


class ConvMode(Enum):
    """Whether the planes are separate images or layers of one volume."""

    conv_2D = 0  # noqa: N815
    conv_3D = 1  # noqa: N815


class Norm(Enum):
    """The normalization after a convolution."""

    none = 0
    batch = 1
    layer = 2
