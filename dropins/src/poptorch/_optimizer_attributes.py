"""Which attributes of an optimizer may change after compilation, and which ones are unexpected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import torch

from poptorch._errors import require

__all__ = ["AttributeTracker", "VariableAttributes"]

_TORCHS_OWN = frozenset({"defaults", "state", "param_groups", "variable_attrs"})

_SCHEDULERS = frozenset(
    {"step", "initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr", "warmup_step"}
)
"""What torch's learning-rate schedulers write into the optimizers that they drive."""


class VariableAttributes:
    """Which attributes of an optimizer may change after compilation."""

    def __init__(self, variable_attributes: Iterable[str], allowed_attributes: Iterable[str]) -> None:
        self._allowed_attributes = list(allowed_attributes)
        self._variable_attributes: list[str] = []
        for name in variable_attributes:
            self.markAsVariable(name)

    @property
    def variables(self) -> frozenset[str]:
        """The attributes that may change."""
        return frozenset(self._variable_attributes)

    @property
    def constants(self) -> frozenset[str]:
        """The attributes that are compiled in."""
        return frozenset(self._allowed_attributes) - self.variables

    def isConstant(self, attr: str) -> bool:
        """Whether an attribute is compiled in."""
        return self._known(attr) not in self._variable_attributes

    def markAsConstant(self, attr: str) -> None:
        """Compile an attribute in."""
        if not self.isConstant(attr):
            self._variable_attributes.remove(attr)

    def markAsVariable(self, attr: str) -> None:
        """Let an attribute change after compilation."""
        if self.isConstant(attr):
            self._variable_attributes.append(attr)

    def _known(self, attr: str) -> str:
        known = self._allowed_attributes
        require(attr in known, f"Unknown attribute {attr}. The attributes are {', '.join(known)}.")
        return attr


class AttributeTracker:
    """Finds attributes that an optimizer did not have when a model first got it."""

    def __init__(self) -> None:
        self._expected: dict[str, set[str]] = {}
        self._said: set[str] = set()

    def report(self, optimizer: torch.optim.Optimizer, kind: str, say: Callable[[str], None]) -> None:
        """Remember the attributes of the first optimizer of a kind, and warn once of later ones, which are ignored."""
        groups = [set(group) for group in optimizer.param_groups]
        self._compare(f"optimizer attribute in {kind} optimizer", _own_attributes(optimizer), say)
        self._compare(f"default group variable in {kind} optimizer", set(optimizer.defaults) - _SCHEDULERS, say)
        expected = self._expected.setdefault(f"group attributes of {kind}", set(chain.from_iterable(groups)))
        for position, names in enumerate(groups):
            self._say(f"group {position} attribute in {kind} optimizer", names - expected - _SCHEDULERS, say)

    def _compare(self, what: str, names: set[str], say: Callable[[str], None]) -> None:
        self._say(what, names - self._expected.setdefault(what, names), say)

    def _say(self, what: str, unexpected: set[str], say: Callable[[str], None]) -> None:
        text = f"Ignoring unexpected {what}: {sorted(unexpected)}"
        if unexpected and text not in self._said:
            self._said.add(text)
            say(text)


def _own_attributes(optimizer: torch.optim.Optimizer) -> set[str]:
    """The attributes that an optimizer has itself; torch's schedulers replace its method ``step``."""
    return {
        name
        for name, value in vars(optimizer).items()
        if not name.startswith("_") and name not in _TORCHS_OWN and not (name == "step" and callable(value))
    }
