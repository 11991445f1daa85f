"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.optim.arithmetic import add_scaled, add_scaled_, is_zero, scale_
from pilotage.optim.family import Family, GroupSettings, Refinements, has_momentum, plain_values
from pilotage.optim.rule import Value
from pilotage.optim.workspace import Workspace, empty_slot


@dataclass(frozen=True, kw_only=True)
class SgdRule:
    """The arithmetic of ``torch.optim.SGD``: values ``lr``, ``momentum``, ``dampening`` and ``weight_decay``.

    While a variable momentum is zero, the buffer holds the last gradient, where torch would keep an older one; the
    updates are the same.
    """

    momentum: bool = False
    """Whether there is a momentum buffer; without one, momentum and dampening are ignored."""

    nesterov: bool = False
    maximize: bool = False

    momentum_dtype: torch.dtype | None = None
    """The type of the momentum buffer; None is the parameter's type."""

    @property
    def kind(self) -> str:
        """The optimizer by name."""
        return "SGD"

    @property
    def slots(self) -> tuple[str, ...]:
        """The momentum buffer, if used."""
        return ("momentum_buffer",) if self.momentum else ()

    def initial(self, slot: str, parameter: Tensor) -> Tensor:
        """Zeros; the first update then sets the buffer to the gradient."""
        return empty_slot(parameter, self.momentum_dtype)

    def apply(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> None:
        """Update parameters and momentum buffers in place."""
        updates = work.gradients
        if not is_zero(values["weight_decay"]):
            updates = add_scaled(updates, work.parameters, values["weight_decay"])
        if self.momentum:
            updates = self._with_momentum(work, updates, step, values)
        add_scaled_(work.parameters, updates, -values["lr"])

    def _with_momentum(
        self, work: Workspace, updates: list[Tensor], step: Tensor, values: Mapping[str, Value]
    ) -> list[Tensor]:
        buffers = work.slots["momentum_buffer"]
        scale_(buffers, values["momentum"])
        add_scaled_(buffers, updates, _gradient_factor(step, values["momentum"], values["dampening"]))
        work.store("momentum_buffer")
        return add_scaled(updates, buffers, values["momentum"]) if self.nesterov else buffers


def _gradient_factor(step: Tensor, momentum: Value, dampening: Value) -> Value:
    """The factor of the gradient in the buffer: torch does not dampen the first update."""
    if is_zero(dampening):
        return 1.0
    dampened = step != 0
    if isinstance(momentum, Tensor):
        dampened = dampened & (momentum != 0)
    return 1 - dampened.to(step.dtype) * dampening


def _sgd_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> SgdRule:
    return SgdRule(
        momentum=has_momentum(settings, constants),
        nesterov=settings["nesterov"],
        maximize=settings["maximize"],
        momentum_dtype=refinements.first_moment_dtype,
    )


SGD = Family(
    optimizer=torch.optim.SGD,
    values=plain_values("lr", "momentum", "dampening", "weight_decay"),
    rule=SgdRule,
    choices=_sgd_rule,
    defaults={"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0},
)
