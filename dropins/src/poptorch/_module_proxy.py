"""A part of a wrapped model, whose parameters can be given one value for each group of replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from pilotage.runtime.executor import Executor
from poptorch._parameter_proxy import ParameterProxy

__all__ = ["ModuleProxy", "seen_through"]


def seen_through(executor: Executor, value: Any) -> Any:
    """A parameter as a proxy; so is a part of the model, as long as its replicas can still be grouped."""
    if isinstance(value, nn.Parameter):
        return ParameterProxy(executor, value)
    if isinstance(value, nn.Module) and executor.execution.batching.replicas > 1 and not executor.is_compiled:
        return ModuleProxy(executor, value)
    return value


class ModuleProxy:
    """Behaves as the part does, and gives out its parameters with `replicaGrouping`."""

    def __init__(self, executor: Executor, module: nn.Module) -> None:
        object.__setattr__(self, "_executor", executor)
        object.__setattr__(self, "_module", module)

    @property
    def __class__(self) -> Any:
        """The class of the part, so that isinstance() sees what it would see without a wrapper."""
        return type(object.__getattribute__(self, "_module"))

    def __getattr__(self, name: str) -> Any:
        return seen_through(self._executor, getattr(self._module, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)

    def __getitem__(self, key: Any) -> Any:
        return seen_through(self._executor, self._module[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._module[key] = value

    def __iter__(self) -> Iterator[Any]:
        return (seen_through(self._executor, value) for value in self._module)

    def __len__(self) -> int:
        return len(self._module)

    def __contains__(self, key: Any) -> bool:
        return key in self._module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._module(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._module.__reduce_ex__(protocol)

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return repr(self._module)
