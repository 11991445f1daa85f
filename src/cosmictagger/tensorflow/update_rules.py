"""Torch's update rules in TensorFlow, with the numbers of a torch optimizer.

TensorFlow's own optimizers add epsilon elsewhere and have other defaults, so the same names train differently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import tensorflow as tf
import torch
from tensorflow import Tensor

from cosmictagger.errors import DeviceError


class UpdateRule(Protocol):
    """How a gradient changes a weight."""

    slots: ClassVar[tuple[str, ...]]
    """What the rule remembers for each weight, under torch's names."""

    def numbers(self, rate: float, update: int) -> tuple[float, ...]:
        """The numbers of an update, counted from 1; computed in float64, as torch does."""
        ...

    def change(self, gradient: Tensor, slots: Sequence[Tensor], numbers: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """What to subtract from a weight, and its new slots."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam:
    """``torch.optim.Adam``."""

    slots: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    betas: tuple[float, float]
    epsilon: float

    def numbers(self, rate: float, update: int) -> tuple[float, ...]:
        """The step size and the scale of the second moment, both corrected for the zeros at the start."""
        first, second = (1.0 - beta**update for beta in self.betas)
        return rate / first, math.sqrt(second)

    def change(self, gradient: Tensor, slots: Sequence[Tensor], numbers: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The first moment over the root of the second."""
        average = slots[0] + (1.0 - self.betas[0]) * (gradient - slots[0])
        square = self.betas[1] * slots[1] + (1.0 - self.betas[1]) * tf.square(gradient)
        return numbers[0] * average / (tf.sqrt(square) / numbers[1] + self.epsilon), (average, square)


@dataclass(frozen=True, kw_only=True, slots=True)
class RootMeanSquare:
    """``torch.optim.RMSprop``."""

    slots: ClassVar[tuple[str, ...]] = ("square_avg",)
    alpha: float
    epsilon: float

    def numbers(self, rate: float, update: int) -> tuple[float, ...]:
        """The rate."""
        return (rate,)

    def change(self, gradient: Tensor, slots: Sequence[Tensor], numbers: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The gradient over the root of its mean square."""
        square = self.alpha * slots[0] + (1.0 - self.alpha) * tf.square(gradient)
        return numbers[0] * gradient / (tf.sqrt(square) + self.epsilon), (square,)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainDescent:
    """``torch.optim.SGD``."""

    slots: ClassVar[tuple[str, ...]] = ()

    def numbers(self, rate: float, update: int) -> tuple[float, ...]:
        """The rate."""
        return (rate,)

    def change(self, gradient: Tensor, slots: Sequence[Tensor], numbers: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The gradient."""
        return numbers[0] * gradient, ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Adagrad:
    """``torch.optim.Adagrad``."""

    slots: ClassVar[tuple[str, ...]] = ("sum",)
    epsilon: float

    def numbers(self, rate: float, update: int) -> tuple[float, ...]:
        """The rate."""
        return (rate,)

    def change(self, gradient: Tensor, slots: Sequence[Tensor], numbers: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The gradient over the root of the sum of all squares."""
        total = slots[0] + tf.square(gradient)
        return numbers[0] * gradient / (tf.sqrt(total) + self.epsilon), (total,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Adadelta:
    """``torch.optim.Adadelta``."""

    slots: ClassVar[tuple[str, ...]] = ("square_avg", "acc_delta")
    rho: float
    epsilon: float

    def numbers(self, rate: float, update: int) -> tuple[float, ...]:
        """The rate."""
        return (rate,)

    def change(self, gradient: Tensor, slots: Sequence[Tensor], numbers: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The gradient, scaled by the ratio of earlier changes to gradients."""
        square = self.rho * slots[0] + (1.0 - self.rho) * tf.square(gradient)
        step = tf.sqrt(slots[1] + self.epsilon) / tf.sqrt(square + self.epsilon) * gradient
        return numbers[0] * step, (square, self.rho * slots[1] + (1.0 - self.rho) * tf.square(step))


PLAIN: dict[str, Any] = {
    "weight_decay": 0,
    "momentum": 0,
    "centered": False,
    "amsgrad": False,
    "maximize": False,
    "nesterov": False,
    "lr_decay": 0,
    "initial_accumulator_value": 0,
}
"""Options of torch's optimizers at which these rules hold."""


def rule_of(optimizer: torch.optim.Optimizer) -> UpdateRule:
    """The rule of a torch optimizer, with its numbers."""
    (group,) = optimizer.param_groups
    for name, plain in PLAIN.items():
        if group.get(name, plain) != plain:
            raise DeviceError(f"framework=tensorflow has no {name}={group[name]} of {type(optimizer).__name__}.")
    match optimizer:
        case torch.optim.Adam():
            first, second = group["betas"]
            return Adam(betas=(first, second), epsilon=group["eps"])
        case torch.optim.RMSprop():
            return RootMeanSquare(alpha=group["alpha"], epsilon=group["eps"])
        case torch.optim.SGD():
            return PlainDescent()
        case torch.optim.Adagrad():
            return Adagrad(epsilon=group["eps"])
        case torch.optim.Adadelta():
            return Adadelta(rho=group["rho"], epsilon=group["eps"])
        case other:
            raise DeviceError(
                f"framework=tensorflow has no {type(other).__name__}. "
                "Use mode.optimizer.name=adam, rmsprop, sgd, adagrad or adadelta, or framework=torch."
            )
