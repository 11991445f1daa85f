"""An optimizer whose settings are read before every call, so that schedulers work."""

from __future__ import annotations

import torch
from torch import nn

from pilotage.optim.reading import read_again, read_optimizer
from pilotage.optim.rule import OptimizerPlan
from pilotage.optim.settings import Settings


class FollowedOptimizer:
    """The optimizer of a program: changes of its parameter groups take effect at the next call."""

    def __init__(self, optimizer: torch.optim.Optimizer, module: nn.Module) -> None:
        self.optimizer = optimizer
        self._module = module
        self._names = _names(module)
        self._settings = Settings(optimizer)

    def first_plan(self, *, like: OptimizerPlan | None = None) -> OptimizerPlan:
        """The current plan, with warnings about what a program ignores."""
        return read_optimizer(self.optimizer, self._names, like=like)

    def has_changed(self) -> bool:
        """Whether the parameter groups differ from those noted last."""
        return self._settings.differ_from(self.optimizer)

    def plan(self, compiled: OptimizerPlan | None) -> OptimizerPlan:
        """The current plan, with the constants and variables of a compiled one if given."""
        if compiled is None:
            self._names = _names(self._module)
        return read_again(self.optimizer, self._names, like=compiled)

    def note(self) -> None:
        """Remember the current settings as applied."""
        self._settings.note(self.optimizer)

    def note_update(self) -> None:
        """Tell torch's schedulers that an update was made, as they expect one before the first change of a rate."""
        self.optimizer._opt_called = True  # type: ignore[attr-defined]


def _names(module: nn.Module) -> dict[int, str]:
    return {id(parameter): name for name, parameter in module.named_parameters()}
