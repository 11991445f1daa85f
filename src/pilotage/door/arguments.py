"""Checks what `pilotage.training` and `pilotage.inference` are given, before anything is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pilotage.errors import OptionError
from pilotage.runtime.guards import GuardedModel


def require_module(module: Any) -> None:
    """Refuse anything but a module, such as a model that is wrapped already."""
    if isinstance(module, GuardedModel):
        raise OptionError("This model is wrapped already. Wrap its .module, which shows the trained weights.")
    if not isinstance(module, nn.Module):
        raise OptionError(f"The first argument must be a torch.nn.Module. It is of the type {type(module).__name__}.")


def require_optimizer(optimizer: Any) -> None:
    """Refuse anything that has no groups of parameters, and another library's wrapper, which steps in its own way."""
    if isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        raise OptionError(
            f"This {type(optimizer).__name__} wraps the optimizer. Give pilotage.training the optimizer itself, and "
            "leave it out of what prepares it, such as accelerator.prepare() or fabric.setup()."
        )
    if not hasattr(type(optimizer), "step") or not hasattr(optimizer, "param_groups"):
        raise OptionError(
            "The second argument must be an optimizer, such as torch.optim.AdamW(model.parameters()). It is of "
            f"the type {type(optimizer).__name__}."
        )


def require_loss(loss: Callable[..., Any] | None) -> None:
    """Refuse a loss that cannot be called."""
    if loss is not None and not callable(loss):
        raise OptionError(
            f"loss= is {loss!r}. Give it a function of output and target, such as torch.nn.CrossEntropyLoss()."
        )
