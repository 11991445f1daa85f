"""Names operations after the submodules that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import nn

from pilotage.engine import in_scope

__all__ = ["module_scopes"]


@contextmanager
def module_scopes(module: nn.Module) -> Iterator[None]:
    """Name what each submodule computes in the block after the submodule."""
    scopes = _Scopes()
    with ExitStack() as handles:
        for path, part in module.named_modules():
            if path:
                enter = partial(scopes.enter, path.replace(".", "/"))
                handles.enter_context(part.register_forward_pre_hook(enter, prepend=True))
                handles.enter_context(part.register_forward_hook(scopes.leave, always_call=True))
        try:
            yield
        finally:
            # Torch calls no hooks after an interrupt.
            scopes.leave_all()


class _Scopes:
    """Enters the scope of a submodule before its forward and leaves it afterwards, even if forward fails."""

    def __init__(self) -> None:
        self._entered: list[tuple[str, AbstractContextManager[None]]] = []
        self._is_copied = False

    def __deepcopy__(self, memo: object) -> _Scopes:
        """A copy of the module has copies of its hooks, which name nothing."""
        copied = _Scopes()
        copied._is_copied = True
        return copied

    def enter(self, path: str, part: nn.Module, args: Any) -> None:
        """Enter a submodule; inside of another one, by the rest of its path."""
        if self._is_copied:
            return
        around = f"{self._entered[-1][0]}/" if self._entered else ""
        scope = in_scope(path.removeprefix(around))
        scope.__enter__()
        self._entered.append((path, scope))

    def leave(self, part: nn.Module, args: Any, result: Any) -> None:
        """Leave the submodule that was entered last."""
        if self._entered:
            self._entered.pop()[1].__exit__(None, None, None)

    def leave_all(self) -> None:
        """Leave what is still entered, the innermost first."""
        while self._entered:
            self._entered.pop()[1].__exit__(None, None, None)
