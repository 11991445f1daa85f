"""Wrapping a module for training or for inference."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from poptorch import optim
from poptorch._errors import createPoptorchError
from poptorch._functions import FunctionModule
from poptorch._model_checks import check_buffer_types
from poptorch._poplar_executor import PoplarExecutor
from poptorch.options import Options

__all__ = ["inferenceModel", "trainingModel"]

_in_training: WeakKeyDictionary[nn.Module, weakref.ref[PoplarExecutor]] = WeakKeyDictionary()
"""Which modules are wrapped for training; entries vanish with the module or its wrapper."""


def trainingModel(
    model: nn.Module | PoplarExecutor, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
) -> PoplarExecutor:
    """Wrap a module whose forward computes its loss: each call runs whole training steps on the device."""
    module = _module_of(model)
    refuse_second_wrapping(module)
    check_buffer_types(module)
    executor = PoplarExecutor(
        module,
        _checked(options),
        training=True,
        optimizer=optimizer or optim.SGD(module.parameters(), lr=0.01),
    )
    note_training(executor)
    return executor


def inferenceModel(
    model: nn.Module | PoplarExecutor | Callable[..., Any], options: Options | None = None
) -> PoplarExecutor:
    """Wrap a module, or any function of tensors, so that each call runs it on the device."""
    return PoplarExecutor(_module_of(model), _checked(options), training=False)


def _module_of(model: Any) -> nn.Module:
    if isinstance(model, PoplarExecutor):
        return model.model
    if isinstance(model, torch.jit.ScriptModule):
        raise createPoptorchError("A scripted module cannot be captured. Wrap the module that it was scripted from.")
    if isinstance(model, nn.Module):
        return model
    if callable(model):
        return FunctionModule(model)
    raise createPoptorchError(f"A model is a torch.nn.Module or a function, not {type(model).__name__}.")


def _checked(options: Options | None) -> Options:
    chosen = Options() if options is None else options
    if not isinstance(chosen, Options):
        raise createPoptorchError(f"Invalid type for options: {type(chosen).__name__}, expected poptorch.Options.")
    chosen._freeze()
    return chosen


def note_training(executor: PoplarExecutor) -> None:
    """Remember that the executor's module is trained by it."""
    _in_training[executor.model] = weakref.ref(executor)


def refuse_second_wrapping(module: nn.Module) -> None:
    """Raise if a module is being trained already."""
    known = _in_training.get(module)
    executor = known() if known is not None else None
    if executor is not None and not executor.destroyed:
        raise RuntimeError(
            "Model has already been wrapped in 'poptorch.trainingModel'. Call model.destroy() on the model to unwrap "
            "before wrapping again."
        )
