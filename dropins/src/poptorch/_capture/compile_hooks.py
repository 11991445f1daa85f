"""Functions to call before and after each compilation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils.hooks import RemovableHandle

__all__ = ["around_forward", "registerPostCompileHook", "registerPreCompileHook"]

Hook = Callable[[], Any]

_before: OrderedDict[int, Hook] = OrderedDict()
_after: OrderedDict[int, Hook] = OrderedDict()


def registerPreCompileHook(hook: Hook) -> RemovableHandle:
    """Call this function, without arguments, before the forward of each model that is compiled."""
    return _registered(_before, hook)


def registerPostCompileHook(hook: Hook) -> RemovableHandle:
    """Call this function, without arguments, after the forward of each model that is compiled, even if it failed."""
    return _registered(_after, hook)


@contextmanager
def around_forward() -> Iterator[None]:
    """Call the registered functions before and after the block."""
    for hook in list(_before.values()):
        hook()
    try:
        yield
    finally:
        for hook in list(_after.values()):
            hook()


def _registered(hooks: OrderedDict[int, Hook], hook: Hook) -> RemovableHandle:
    if not callable(hook):
        raise RuntimeError(f"A compile hook must be callable, not {hook!r}.")
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
