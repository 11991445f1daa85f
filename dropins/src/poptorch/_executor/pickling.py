"""Wrapped models in files that programs write with ``torch.save``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from poptorch._executor.optimizer_link import OptimizerLink
from poptorch.options import Options

__all__ = ["Picklable"]


class Picklable:
    """A wrapped model is pickled as its module, options and optimizer; the copy is compiled at its first call."""

    trains: bool
    _user_model: nn.Module
    _options: Options
    _link: OptimizerLink | None

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        optimizer = None if self._link is None else self._link.optimizer
        return _wrapped_again, (self._user_model, self._options.clone(), self.trains, optimizer)


def _wrapped_again(
    model: nn.Module, options: Options, trains: bool, optimizer: torch.optim.Optimizer | None
) -> Picklable:
    from poptorch._executor.wrapping import inferenceModel, trainingModel  # They make what is defined here.

    return trainingModel(model, options, optimizer) if trains else inferenceModel(model, options)
