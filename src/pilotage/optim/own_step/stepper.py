"""Runs the step() of an optimizer's class on given tensors."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.optim.own_step.tensor_numbers import tensors_as_numbers
from pilotage.torch_private import STEP_HOOKS, as_if_compiling, bare_step

State = MutableMapping[str, Any]
"""What an optimizer keeps for one parameter."""


@dataclass(frozen=True)
class Stepper:
    """An optimizer and the settings of one of its parameter groups."""

    optimizer: torch.optim.Optimizer
    settings: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The optimizer by name."""
        return type(self.optimizer).__name__

    def run(
        self,
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        states: Sequence[State],
        values: Mapping[str, Any],
        *,
        captures: bool,
    ) -> None:
        """Update parameters and their states by a twin of the optimizer, which shares nothing with it that changes.

        With ``captures``, values and counts may be tensors, and nothing that runs needs their numbers.
        """
        twin = object.__new__(type(self.optimizer))
        own = {name: value for name, value in vars(self.optimizer).items() if name != "step"}
        settings = {**self.settings, **_flags(self.settings, captures=captures), **_named(self.settings, values)}
        own |= {
            "param_groups": [{**settings, "params": list(parameters)}],
            "state": defaultdict(dict, zip(parameters, states, strict=True)),
            **{hooks: OrderedDict() for hooks in STEP_HOOKS},
        }
        vars(twin).update(own)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        try:
            with ExitStack() as stack:
                stack.enter_context(torch.no_grad())
                if captures:
                    stack.enter_context(as_if_compiling())
                    stack.enter_context(tensors_as_numbers(type(twin)))
                bare_step(type(twin))(twin)
        finally:
            for parameter in parameters:
                parameter.grad = None
        self._refuse_hidden_state(own, vars(twin), settings)

    def _refuse_hidden_state(
        self, before: Mapping[str, Any], after: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        changed = [name for name in after if after[name] is not before.get(name, _NOTHING)]
        group = {name: value for name, value in after["param_groups"][0].items() if name != "params"}
        changed += [f"param_groups[…][{name!r}]" for name in group if group[name] is not settings.get(name, _NOTHING)]
        if changed:
            raise OptionError(
                f"{self.kind} cannot become part of a program: its step() changes {changed[0]}, and a program keeps "
                "only what an optimizer has in its state for each parameter. Use an optimizer of torch.optim, or keep "
                "that value in self.state[parameter]."
            )


_NOTHING = object()


def _flags(settings: Mapping[str, Any], *, captures: bool) -> dict[str, Any]:
    """Settings that choose an implementation: one tensor after the other, as a program or a comparison needs it."""
    wanted = {"foreach": False, "fused": False, "capturable": captures, "differentiable": False}
    return {name: value for name, value in wanted.items() if name in settings}


def _named(settings: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a plan under the names that a parameter group has for them."""
    named = {name: value for name, value in values.items() if name != "beta1"}
    if "beta1" in values:
        named["betas"] = (values["beta1"], *settings["betas"][1:])
    return named
