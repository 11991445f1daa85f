"""The settings of an optimizer's parameter groups, and whether they have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

NOT_READ = frozenset({"params", "foreach", "fused", "capturable", "differentiable"})
"""Settings that do not affect the arithmetic of an update."""

SCHEDULER_SETTINGS = frozenset({"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"})
"""What torch's schedulers store in a parameter group for themselves."""


class Settings:
    """The settings of all parameter groups when they were last noted."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._readers: list[Callable[[Mapping[str, Any]], Any]] = []
        self._noted: list[Any] = []
        self.rates: list[float] = []
        """The learning rates."""
        self.note(optimizer)

    def note(self, optimizer: torch.optim.Optimizer) -> None:
        """Remember the current settings."""
        groups = optimizer.param_groups
        self._readers = [_reader(group) for group in groups]
        self._noted = [as_number(read(group)) for read, group in zip(self._readers, groups, strict=True)]
        self.rates = rates_of(optimizer)

    def differ_from(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether the optimizer's settings have changed; called in every host call, so it has to be fast."""
        groups = optimizer.param_groups
        if len(groups) != len(self._readers):
            return True
        return [read(group) for read, group in zip(self._readers, groups, strict=True)] != self._noted


def rates_of(optimizer: torch.optim.Optimizer) -> list[float]:
    """The learning rate of each parameter group."""
    return [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]


def _reader(group: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Any]:
    return itemgetter(*sorted(group.keys() - NOT_READ - SCHEDULER_SETTINGS))


def as_number(value: Any) -> Any:
    """Numbers instead of tensors, which schedulers modify in place."""
    if isinstance(value, Tensor):
        return value.item()
    return type(value)(map(as_number, value)) if type(value) in (tuple, list) else value
