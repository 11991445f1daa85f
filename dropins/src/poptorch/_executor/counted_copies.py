"""The method `copyWeightsToHost` that programs replace on a wrapped model, to count the copies that reading causes.

PopTorch copies newer weights as soon as anything touches the table of a module's parameters; here, using one of them is
enough to see its newest values. For a program that counts copies, the tables are watched as well.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, ItemsView, ValuesView
from types import MethodType
from typing import Any, Protocol

from torch import nn

from pilotage.engine import Executor

__all__ = ["ReplaceableCopy"]


class CopiesWeights(Protocol):
    """A wrapped model."""

    engine: Executor
    _user_model: nn.Module

    @property
    def copyWeightsToHost(self) -> Callable[[], Any]:
        """Copies the device's weights to the module."""


class ReplaceableCopy:
    """The method of a class, until it is assigned to on an instance: then the parameters of its module are watched."""

    def __init__(self, method: Callable[[Any], None]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self._method
        return vars(model).get(self._name) or MethodType(self._method, model)

    def __set__(self, model: CopiesWeights, replacement: Callable[[], Any]) -> None:
        vars(model)[self._name] = replacement
        watch = Watch(weakref.ref(model))
        for part in model._user_model.modules():
            vars(part)["_parameters"] = WatchedParameters(part._parameters, watch)

    def __delete__(self, model: CopiesWeights) -> None:
        del vars(model)[self._name]
        for part in model._user_model.modules():
            vars(part)["_parameters"] = dict(part._parameters)


class Watch:
    """Copies the weights of a model when they are older than the device's, unless the model itself is at work."""

    def __init__(self, model: weakref.ref[CopiesWeights]) -> None:
        self._model = model
        self._is_copying = False

    def __call__(self) -> None:
        """Called when the parameters are iterated over."""
        model = self._model()
        if model is None or self._is_copying or model.engine.turn.is_mine:
            return
        trained = model.engine.weights.trained
        if trained is not None and trained.stale:
            self._is_copying = True
            try:
                model.copyWeightsToHost()
            finally:
                self._is_copying = False


class WatchedParameters(dict[str, nn.Parameter | None]):
    """A module's table of parameters that reports each iteration over it; its copies are plain dictionaries."""

    def __init__(self, parameters: dict[str, nn.Parameter | None], watch: Watch) -> None:
        super().__init__(parameters)
        self._watch = watch

    def items(self) -> ItemsView[str, nn.Parameter | None]:  # type: ignore[override]
        """The parameters by name, with the newest values."""
        self._watch()
        return super().items()

    def values(self) -> ValuesView[nn.Parameter | None]:  # type: ignore[override]
        """The parameters, with the newest values."""
        self._watch()
        return super().values()

    def __reduce_ex__(self, protocol: Any) -> tuple[type, tuple[dict[str, nn.Parameter | None]]]:
        return dict, ({name: self[name] for name in self},)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, nn.Parameter | None]:
        self._watch()
        return copy.deepcopy({name: self[name] for name in self}, memo)
