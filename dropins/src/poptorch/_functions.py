"""Functions of tensors as modules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import nn

__all__ = ["FunctionModule"]


class FunctionModule(nn.Module):
    """A function, with the modules that it uses as parts: their weights are state of the program, and no constants."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function if _tells_its_arguments(function) else _taking_anything(function)
        used = {id(module): module for module in _modules_in(_reached(function))}
        self.parts = nn.ModuleList(used.values())


def _tells_its_arguments(function: Callable[..., Any]) -> bool:
    """Whether Python knows what a function takes; of most of torch's own it does not."""
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
    """What a function can get at by its names: its owner, what it closes over, globals, and arguments set before."""
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
    except ValueError:  # It closes over something that does not exist yet.
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
