"""Tensors that replace those of a module while it runs, wherever forward and a loss function refer to them.

A loss function may keep a parameter in a closure, a global variable or a list. During a run the module has other
tensors in its tables; what is kept elsewhere is replaced when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_not
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode


class StandIns(TorchFunctionMode):
    """While active, functions that are given a tensor of the module get the one that stands for it."""

    def __init__(self, instead: Mapping[int, Tensor]) -> None:
        super().__init__()
        self._instead = instead
        """The tensors by the ``id`` of those of the module."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function."""
        return func(*self._replaced(args), **{name: self._replaced(value) for name, value in (kwargs or {}).items()})

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._instead.get(id(value), value)
        if type(value) in (tuple, list):
            items = [self._replaced(each) for each in value]
            # Most often nothing is replaced, and the function gets the list that it was given.
            return type(value)(items) if any(map(is_not, items, value)) else value
        return value
