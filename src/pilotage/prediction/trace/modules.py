"""Which module of the user's model each captured operation belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import nn
from torch.fx import Node
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from pilotage.program.graphs.origins import in_scope, scope_of

__all__ = ["module_of", "noting_modules"]

_MARK = "module "
"""Begins the scopes that stand for modules; PopTorch's own names have none."""


@contextmanager
def noting_modules(root: nn.Module) -> Iterator[None]:
    """While active, note the module of each operation that is captured."""
    names = {module: name for name, module in root.named_modules(remove_duplicate=True)}
    entered: list[tuple[nn.Module, ExitStack]] = []

    def enter(module: nn.Module, arguments: Any) -> None:
        if module in names:
            stack = ExitStack()
            stack.enter_context(in_scope(f"{_MARK}{names[module]}"))
            entered.append((module, stack))

    def leave(module: nn.Module, arguments: Any, result: Any) -> None:
        if entered and entered[-1][0] is module:
            entered.pop()[1].close()

    hooks = (register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        while entered:
            entered.pop()[1].close()


def module_of(node: Node) -> str:
    """The innermost module of an operation; empty outside of the model, as in the update."""
    for part in reversed(scope_of(node).split("/")):
        if part.startswith(_MARK):
            return part.removeprefix(_MARK)
    return ""
