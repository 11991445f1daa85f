"""The words that options are chosen from; each may also be given by its number."""

from __future__ import annotations

from enum import Enum


class ComputeMode(Enum):
    """Which kind of device computes."""

    CPU = 0
    GPU = 1
    DPCPP = 2
    XPU = 3
    HPU = 4
    IPU = 5


class Precision(Enum):
    """Which numbers are computed with; weights and optimizer stay float32 in all but float16."""

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
    """How pixels are weighed against each other."""

    none = 0
    light = 1
    even = 2
    focal = 3


class OptimizerKind(Enum):
    """How weights are updated."""

    adam = 0
    rmsprop = 1


class DataFormat(Enum):
    """Where the planes stand in a batch."""

    channels_last = 0
    channels_first = 1


class DistributedMode(Enum):
    """What exchanges gradients between processes."""

    DDP = 0
    horovod = 1


class Connection(Enum):
    """How the way up takes in what the way down left."""

    concat = 0
    sum = 1
    none = 2


class GrowthRate(Enum):
    """How the number of channels grows from level to level."""

    multiplicative = 0
    additive = 1


class DownSampling(Enum):
    """How a level halves the image."""

    convolutional = 0
    max_pooling = 1


class UpSampling(Enum):
    """How a level doubles the image."""

    convolutional = 0
    interpolation = 1


class ConvMode(Enum):
    """Whether the planes are three images or three layers of one volume."""

    conv_2D = 0  # noqa: N815
    conv_3D = 1  # noqa: N815


class Norm(Enum):
    """What follows a convolution."""

    none = 0
    batch = 1
    layer = 2
