"""The registry of optimizers that can become part of a program: reading and storing go by this one list."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pilotage.errors import OptionError
from pilotage.optim.adam import ADAM, ADAMW
from pilotage.optim.family import Family, GroupSettings, Refinements
from pilotage.optim.lamb import LAMB
from pilotage.optim.rmsprop import RMSPROP
from pilotage.optim.rule import UpdateRule
from pilotage.optim.sgd import SGD

__all__ = ["FAMILIES", "RULES", "Family", "GroupSettings", "Refinements", "family_of"]

FAMILIES = (SGD, ADAMW, ADAM, RMSPROP, LAMB)
"""Every family; a class comes before its base classes."""

RULES: Mapping[str, type[UpdateRule]] = {family.rule.__name__: family.rule for family in FAMILIES}
"""Every update rule, by the name that stored programs give it."""


def family_of(optimizer: torch.optim.Optimizer) -> Family:
    """The family of an optimizer."""
    for family in FAMILIES:
        if isinstance(optimizer, family.optimizer):
            return family
    supported = ", ".join(f"{f.optimizer.__module__.split('.')[0]}'s {f.optimizer.__name__}" for f in FAMILIES)
    raise OptionError(
        f"{type(optimizer).__name__} cannot become part of a program. Use one of {supported}, or a subclass that "
        "only presets their arguments."
    )
