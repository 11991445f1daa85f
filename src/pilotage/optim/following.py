"""An optimizer whose settings are read before every call, so that schedulers work."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter, is_, itemgetter

import torch
from torch import Tensor, nn

from pilotage.errors import OptionError
from pilotage.optim.family import Refinements
from pilotage.optim.reading import code_around_steps, read_again, read_optimizer
from pilotage.optim.rule import OptimizerPlan
from pilotage.optim.settings import Settings
from pilotage.torch_private import DisableTorchFunctionSubclass, step_post_hooks, step_pre_hooks

_REQUIRES_GRADIENT, _PARAMETERS = attrgetter("requires_grad"), itemgetter("params")
"""Read from every parameter, and from every group, at every call."""


class FollowedOptimizer:
    """The optimizer of a program: changes of its parameter groups take effect at the next call."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, module: nn.Module, refinements: Refinements | None = None
    ) -> None:
        self.optimizer = optimizer
        self._refinements = refinements or Refinements()
        self._module = module
        self._names = _names(module)
        self._settings = Settings(optimizer)
        self._sizes: list[int] = []
        self._parameters: list[Tensor] = []
        """The parameters of all groups."""
        self._trained: list[bool] = []
        """Whether each of them requires a gradient."""
        self._step: object = None
        """The step() that the optimizer was given in place of its class's own, by a scheduler for instance."""
        self._note_parameters()

    def first_plan(self, *, like: OptimizerPlan | None = None) -> OptimizerPlan:
        """The current plan, with warnings about what a program ignores."""
        self._refuse_code_around_steps()
        return read_optimizer(self.optimizer, self._names, refinements=self._refinements, like=like)

    def has_changed(self) -> bool:
        """Whether the optimizer has to be read again: other settings, parameters, hooks or steps.

        Asked at every call, so it compares flat lists without a loop in Python.
        """
        optimizer = self.optimizer
        if step_pre_hooks(optimizer) or step_post_hooks(optimizer) or vars(optimizer).get("step") is not self._step:
            return True
        if self._settings.differ_from(optimizer):
            return True
        groups = list(map(_PARAMETERS, optimizer.param_groups))
        if list(map(len, groups)) != self._sizes or not all(map(is_, chain.from_iterable(groups), self._parameters)):
            return True
        # Can be asked of weights that are not up to date with the device.
        with DisableTorchFunctionSubclass():
            return list(map(_REQUIRES_GRADIENT, self._parameters)) != self._trained

    def plan(self, compiled: OptimizerPlan | None) -> OptimizerPlan:
        """The current plan, with the constants and variables of a compiled one if given."""
        self._refuse_code_around_steps()
        if compiled is None:
            self._names = _names(self._module)
        return read_again(self.optimizer, self._names, self._refinements, like=compiled)

    def note(self) -> None:
        """Remember the current settings as applied."""
        self._settings.note(self.optimizer)
        self._note_parameters()
        self._step = vars(self.optimizer).get("step")

    def _note_parameters(self) -> None:
        groups = list(map(_PARAMETERS, self.optimizer.param_groups))
        self._sizes, self._parameters = list(map(len, groups)), list(chain.from_iterable(groups))
        with DisableTorchFunctionSubclass():
            self._trained = list(map(_REQUIRES_GRADIENT, self._parameters))

    def _refuse_code_around_steps(self) -> None:
        if code := code_around_steps(self.optimizer):
            raise OptionError(
                f"The {type(self.optimizer).__name__} optimizer has {code}, and a program does not call step(): it "
                "would never run. Remove it, and do its work before or after each call of the wrapped model. Changes "
                "of the weights and of the optimizer's settings count from the next call on."
            )


def _names(module: nn.Module) -> dict[int, str]:
    return {id(parameter): name for name, parameter in module.named_parameters()}
