"""The values of options; each can also be given by its number."""

from __future__ import annotations

from enum import Enum


class ComputeMode(Enum):
    """The kind of device."""

    CPU = 0
    GPU = 1
    CUDA = 1  # noqa: PIE796
    """Version 2.1's name of GPU."""

    DPCPP = 2
    """An old name of Intel's devices, which torch calls xpu."""

    XPU = 3
    HPU = 4
    IPU = 5


class Precision(Enum):
    """The types of activations and weights; only float16 and float64 change the weights and the optimizer."""

    float32 = 0
    mixed = 1
    bfloat16 = 2
    float16 = 3
    float64 = 4
    """For comparisons, on a CPU: in float32 rounding grows from step to step, in any program."""


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
    sgd = 2
    adagrad = 3
    adadelta = 4
    lars = 5
    lamb = 6


CAPTURED = frozenset({OptimizerKind.adam, OptimizerKind.rmsprop, OptimizerKind.sgd})
"""Optimizers that can become part of a program of Pilotage."""


class ScheduleKind(Enum):
    """How the learning rate changes during training."""

    flat = 0
    one_cycle = 1
    standard = 2
    warmup = 3
    """The schedule of version 2.0: one epoch of warm-up, twenty flat ones, exponential decay."""


class RunUnit(Enum):
    """What ``run.run_length`` counts."""

    epoch = 0
    iteration = 1


class Engine(Enum):
    """What executes the steps on a processor."""

    auto = 0
    """A program of Pilotage where that is at least as fast, else the plain loop."""

    pilotage = 1
    eager = 2


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
