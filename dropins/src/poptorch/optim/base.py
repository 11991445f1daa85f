"""What all of PopTorch's optimizers have beyond torch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from pilotage.engine import loss_of, read_group, update_eagerly
from poptorch._optimizer_attributes import VariableAttributes
from poptorch.optim.refining import check_settings, refinements_of
from poptorch.optim.state_on_device import StateOnDevice

__all__ = ["Optimizer"]


class Optimizer(StateOnDevice):
    """The first base of each optimizer, before torch's: extra attributes, variable attributes, state on the device.

    ``step()`` runs the same arithmetic as a compiled program, so every setting has an effect there too. Loss scaling
    is the exception: the caller of ``backward()`` scales the loss, and ``step()`` takes gradients as they are.
    """

    extras: ClassVar[Mapping[str, Any]] = {}
    """Attributes of the whole optimizer, with their defaults."""

    variable_attrs: VariableAttributes
    """Which attributes may change after compilation: those that were given explicitly, unless marked otherwise."""

    def __init__(self, params: Any, group_settings: Mapping[str, Any], **extras: Any) -> None:
        given = {name: value for name, value in group_settings.items() if value is not None}
        super().__init__(params, **given)
        for name, default in self.extras.items():
            setattr(self, name, default if extras[name] is None else extras[name])
        variable = [*given, *(name for name, value in extras.items() if value is not None)]
        self.variable_attrs = VariableAttributes(variable, [*group_settings, *extras])
        check_settings(self)

    def __getstate__(self) -> dict[str, Any]:
        carried = (*self.extras, "variable_attrs")
        return super().__getstate__() | {name: getattr(self, name) for name in carried}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; returns what the closure returned."""
        loss = loss_of(closure)
        refinements = refinements_of(self)
        if refinements.max_gradient_norm != float("inf"):
            everything = [parameter for group in self.param_groups for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(everything, refinements.max_gradient_norm)
        for settings in self.param_groups:
            group = read_group(self, settings, (), refinements)
            update_eagerly(group.rule, settings["params"], self.state, group.values)
        return loss
