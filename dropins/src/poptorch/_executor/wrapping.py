"""Wrapping a module, or a function of tensors, for training or for inference."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from poptorch import optim
from poptorch._checks.buffers import check_buffer_types
from poptorch._errors import createPoptorchError
from poptorch._poplar_executor import PoplarExecutor
from poptorch.options import Options

__all__ = ["inferenceModel", "trainingModel"]

_in_training: WeakKeyDictionary[nn.Module, weakref.ref[PoplarExecutor]] = WeakKeyDictionary()
"""Modules that are wrapped for training; an entry lives as long as the module and its wrapper."""


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
    raise createPoptorchError(f"A model must be a torch.nn.Module or a function, not {type(model).__name__}.")


def _checked(options: Options | None) -> Options:
    chosen = Options() if options is None else options
    if not isinstance(chosen, Options):
        raise createPoptorchError(f"Invalid type for options: {type(chosen).__name__}, expected poptorch.Options.")
    chosen._freeze()
    return chosen


def note_training(executor: PoplarExecutor) -> None:
    """Remember that this executor trains its module."""
    module = executor.model
    _in_training[module] = weakref.ref(executor)
    if isinstance(getattr(module, "destroy", None), ModuleDestroy) or not hasattr(module, "destroy"):
        module.__dict__["destroy"] = ModuleDestroy(weakref.ref(executor))


class ModuleDestroy:
    """The method ``destroy`` of a module that is wrapped for training: that of its wrapper.

    A copy of the module, or one that is read from a file, is not wrapped, and there it does nothing.
    """

    def __init__(self, executor: weakref.ref[PoplarExecutor] | None = None) -> None:
        self._executor = executor

    def __call__(self) -> None:
        """Copy the trained weights to the module and let it be wrapped again."""
        executor = None if self._executor is None else self._executor()
        if executor is not None:
            executor.destroy()

    def __deepcopy__(self, memo: dict[int, Any]) -> ModuleDestroy:
        return ModuleDestroy()

    def __reduce__(self) -> tuple[type[ModuleDestroy], tuple[()]]:
        return ModuleDestroy, ()


def refuse_second_wrapping(module: nn.Module) -> None:
    """Raise if a module is already wrapped for training."""
    known = _in_training.get(module)
    executor = known() if known is not None else None
    if executor is not None and not executor.destroyed:
        raise RuntimeError(
            "Model has already been wrapped in 'poptorch.trainingModel'. Call model.destroy() on the model to unwrap "
            "before wrapping again."
        )


class FunctionModule(nn.Module):
    """A function as a module; the modules it uses become submodules, so that their weights are not constants."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function if _tells_its_arguments(function) else _taking_anything(function)
        used = {id(module): module for module in _modules_in(_reached(function))}
        self.parts = nn.ModuleList(used.values())


def _tells_its_arguments(function: Callable[..., Any]) -> bool:
    """Whether the function has a signature; most of torch's own have none."""
    try:
        inspect.signature(function)
    except ValueError:
        return False
    return True


def _taking_anything(function: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return forward


def _reached(function: Any) -> Iterator[Any]:
    """The values that a function can reach: its owner, closure, globals, defaults and bound arguments."""
    if isinstance(function, functools.partial):
        yield from (*function.args, *function.keywords.values())
        yield from _reached(function.func)
        return
    if inspect.ismethod(function):
        yield function.__self__
        function = function.__func__
    if not inspect.isfunction(function):
        yield from getattr(function, "__dict__", {}).values()
        function = getattr(type(function).__call__, "__wrapped__", type(function).__call__)
    if inspect.isfunction(function):
        yield from (function.__defaults__ or ())
        yield from _named_in(function)


def _named_in(function: Callable[..., Any]) -> Iterable[Any]:
    try:
        names = inspect.getclosurevars(function)
    except ValueError:  # A closure variable has no value yet.
        return ()
    return (*names.nonlocals.values(), *names.globals.values())


def _modules_in(values: Iterable[Any]) -> Iterator[nn.Module]:
    for value in values:
        if isinstance(value, nn.Module):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _modules_in(value)
        elif isinstance(value, dict):
            yield from _modules_in(value.values())
