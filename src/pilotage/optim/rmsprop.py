"""RMSprop, as torch and as TensorFlow define it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.optim.arithmetic import (
    add_scaled,
    add_scaled_,
    add_scaled_square_,
    is_zero,
    lerp_,
    scale_,
    shift_,
    subtract_scaled_quotient_,
)
from pilotage.optim.family import Family, GroupSettings, Refinements, has_momentum, plain_values
from pilotage.optim.rule import Value
from pilotage.optim.workspace import Workspace, empty_slot
from pilotage.torch_private import foreach_addcmul_, foreach_sqrt_

_SQUARES = "square_avg"
_GRADIENTS = "grad_avg"
_BUFFER = "momentum_buffer"


@dataclass(frozen=True, kw_only=True)
class RmspropRule:
    """The arithmetic of ``torch.optim.RMSprop``: values ``lr``, ``alpha``, ``eps``, ``weight_decay``, ``momentum``."""

    momentum: bool = False
    """Whether there is a momentum buffer; without one, the value of momentum is ignored."""

    centered: bool = False
    maximize: bool = False

    tensorflow: bool = False
    """Start the average of squares at one, add eps inside the root, and fold lr into the momentum buffer."""

    first_moment_dtype: torch.dtype | None = None
    """The type of the average gradient and the momentum buffer; None is the parameter's type."""

    second_moment_dtype: torch.dtype | None = None
    """The type of the average of squares; None is the parameter's type."""

    @property
    def kind(self) -> str:
        """RMSprop by torch's or TensorFlow's definition: their momentum buffers differ by the learning rate."""
        return "TensorFlow's RMSprop" if self.tensorflow else "RMSprop"

    @property
    def slots(self) -> tuple[str, ...]:
        """The average of squares, then the average gradient and the momentum buffer if used."""
        return (_SQUARES, *[_GRADIENTS] * self.centered, *[_BUFFER] * self.momentum)

    def initial(self, slot: str, parameter: Tensor) -> Tensor:
        """Zeros; ones for TensorFlow's average of squares."""
        if slot == _SQUARES:
            return empty_slot(parameter, self.second_moment_dtype, fill=1.0 if self.tensorflow else 0.0)
        return empty_slot(parameter, self.first_moment_dtype)

    def apply(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> None:
        """Update parameters and averages in place."""
        updates = work.gradients
        if not is_zero(values["weight_decay"]):
            updates = add_scaled(updates, work.parameters, values["weight_decay"])
        denominators = self._denominators(work, updates, values)
        if not self.momentum:
            subtract_scaled_quotient_(work.parameters, updates, denominators, values["lr"])
            return
        # TensorFlow folds the rate into the buffer; torch applies it to the whole buffer.
        into_buffer, out_of_buffer = (values["lr"], 1.0) if self.tensorflow else (1.0, values["lr"])
        scale_(work.slots[_BUFFER], values["momentum"])
        subtract_scaled_quotient_(work.slots[_BUFFER], updates, denominators, -into_buffer)
        work.store(_BUFFER)
        add_scaled_(work.parameters, work.slots[_BUFFER], -out_of_buffer)

    def _denominators(self, work: Workspace, updates: list[Tensor], values: Mapping[str, Value]) -> list[Tensor]:
        alpha, eps = values["alpha"], values["eps"]
        scale_(work.slots[_SQUARES], alpha)
        add_scaled_square_(work.slots[_SQUARES], updates, 1 - alpha)
        work.store(_SQUARES)
        variances = [squares.clone() for squares in work.slots[_SQUARES]]
        if self.centered:
            means = work.slots[_GRADIENTS]
            lerp_(means, updates, 1 - alpha)
            work.store(_GRADIENTS)
            foreach_addcmul_(variances, means, means, -1)
        if self.tensorflow:
            shift_(variances, eps)
        foreach_sqrt_(variances)
        if not self.tensorflow:
            shift_(variances, eps)
        return variances


def _rmsprop_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> RmspropRule:
    return RmspropRule(
        momentum=has_momentum(settings, constants),
        centered=settings["centered"],
        maximize=settings["maximize"],
        tensorflow=refinements.tensorflow,
        first_moment_dtype=refinements.first_moment_dtype,
        second_moment_dtype=refinements.second_moment_dtype,
    )


RMSPROP = Family(
    optimizer=torch.optim.RMSprop,
    values=plain_values("lr", "alpha", "eps", "weight_decay", "momentum"),
    rule=RmspropRule,
    choices=_rmsprop_rule,
    defaults={"eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0},
    fixed=frozenset({"alpha"}),
)
