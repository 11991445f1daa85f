"""An exponential moving average of a model's weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel


class FusedEMA:
    """A copy of a model in evaluation mode, whose weights and buffers follow those of the model slowly."""

    def __init__(self, model: nn.Module, decay: float = 0.9999, updates: int = 0) -> None:
        self.ema = copy.deepcopy(_unwrapped(model)).eval().requires_grad_(False)
        self.updates = updates
        self._limit = decay

    def decay(self, x: float) -> float:
        """Return the share of the average that update ``x`` keeps; it grows towards the given decay."""
        return self._limit * (1 - math.exp(-x / 2000))

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move the average towards the model; values that are not floating-point numbers stay."""
        self.updates += 1
        share = self.decay(self.updates)
        present = _unwrapped(model).state_dict()
        for name, value in self.ema.state_dict().items():
            if value.is_floating_point():
                value.mul_(share).add_(present[name].detach(), alpha=1 - share)

    def update_attr(
        self, model: nn.Module, include: Sequence[str] = (), exclude: Sequence[str] = ("process_group", "reducer")
    ) -> None:
        """Copy attributes of the model to the average: those in ``include``, or all public ones."""
        for name, value in vars(model).items():
            if not _is_left_out(name, include, exclude):
                setattr(self.ema, name, value)


def _is_left_out(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    return (bool(include) and name not in include) or name.startswith("_") or name in ("training", *exclude)


def _unwrapped(model: Any) -> nn.Module:
    return model.module if isinstance(model, DataParallel | DistributedDataParallel) else model  # type: ignore[no-any-return]
