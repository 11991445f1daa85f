"""Tracks which module of a model is running forward, so that captures can record it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from pilotage.program.graphs.origins import enter_module

__all__ = ["ModuleNames", "naming_modules"]


class ModuleNames:
    """The path of each module inside of its model."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()

    def learn(self, root: nn.Module) -> None:
        """Name all modules of a model."""
        for name, module in root.named_modules():
            self._names.setdefault(module, name)

    def of(self, module: nn.Module) -> str | None:
        """The path of a module; None if its model is not known."""
        return self._names.get(module)


@contextmanager
def naming_modules(root: nn.Module) -> Iterator[None]:
    """While active, captures record the module of each operation."""
    names, entered = ModuleNames(), list[str]()
    names.learn(root)

    def enter(module: nn.Module, arguments: Any) -> None:
        name = names.of(module)
        # A module that forward creates has no path in the model; its operations belong to the calling module.
        entered.append(enter_module(name) if name is not None else enter_module(entered[-1] if entered else ""))

    def leave(module: nn.Module, arguments: Any, result: Any) -> None:
        if entered:
            enter_module(entered.pop())

    with _hooks(enter, leave):
        try:
            yield
        finally:
            enter_module("")


@contextmanager
def _hooks(enter: Callable[..., None], leave: Callable[..., None]) -> Iterator[None]:
    handles = (register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
