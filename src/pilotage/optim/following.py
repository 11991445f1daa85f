"""An optimizer whose settings are read before every call, so that schedulers work."""

from __future__ import annotations

from operator import attrgetter, is_

import torch
from torch import Tensor, nn

from pilotage.errors import OptionError
from pilotage.optim.family import Refinements
from pilotage.optim.reading import code_around_steps, read_again, read_optimizer
from pilotage.optim.rule import OptimizerPlan
from pilotage.optim.settings import Settings
from pilotage.torch_private import OPTIMIZER_WAS_CALLED, DisableTorchFunctionSubclass, step_post_hooks, step_pre_hooks

_REQUIRES_GRADIENT = attrgetter("requires_grad")
"""Asked of every parameter at every call."""


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
        self._held: list[list[Tensor]] = []
        self._parameters: list[Tensor] = []
        self._trained: list[bool] = []
        """Whether each of the held parameters requires a gradient."""
        self._step: object = None
        """The step() that the optimizer was given in place of its class's own, by a scheduler for instance."""
        self._note_parameters()

    def first_plan(self, *, like: OptimizerPlan | None = None) -> OptimizerPlan:
        """The current plan, with warnings about what a program ignores."""
        self._refuse_code_around_steps()
        return read_optimizer(self.optimizer, self._names, refinements=self._refinements, like=like)

    def has_changed(self) -> bool:
        """Whether the optimizer has to be read again: other settings, parameters, hooks or steps."""
        return bool(
            step_pre_hooks(self.optimizer)
            or step_post_hooks(self.optimizer)
            or vars(self.optimizer).get("step") is not self._step
            or self._settings.differ_from(self.optimizer)
            or self._holds_others()
        )

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

    def note_update(self) -> None:
        """Tell torch's schedulers that an update was made, as they expect one before the first change of a rate."""
        setattr(self.optimizer, OPTIMIZER_WAS_CALLED, True)

    def _note_parameters(self) -> None:
        self._held = [list(group["params"]) for group in self.optimizer.param_groups]
        self._parameters = [parameter for held in self._held for parameter in held]
        self._trained = self._require_gradients()

    def _holds_others(self) -> bool:
        """Whether parameters came or went, were frozen or thawed; asked at every call, so it has to be quick."""
        for group, held in zip(self.optimizer.param_groups, self._held, strict=True):
            if len(group["params"]) != len(held) or not all(map(is_, group["params"], held)):
                return True
        return self._require_gradients() != self._trained

    def _require_gradients(self) -> list[bool]:
        # Can be asked of weights that are not up to date with the device.
        with DisableTorchFunctionSubclass():
            return list(map(_REQUIRES_GRADIENT, self._parameters))

    def _refuse_code_around_steps(self) -> None:
        if code := code_around_steps(self.optimizer):
            raise OptionError(
                f"The {type(self.optimizer).__name__} optimizer has {code}, and a program does not call step(): it "
                "would never run. Remove it, and do its work before or after each call of the wrapped model. Changes "
                "of the weights and of the optimizer's settings count from the next call on."
            )


def _names(module: nn.Module) -> dict[int, str]:
    return {id(parameter): name for name, parameter in module.named_parameters()}
