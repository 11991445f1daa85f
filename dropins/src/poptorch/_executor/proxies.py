"""Proxies for parts and parameters of a wrapped model, which give groups of replicas their own values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from pilotage.engine import Executor
from poptorch._errors import createPoptorchError, translated
from poptorch._options.execution import GROUPINGS
from poptorch.enums import CommGroupType, VariableRetrievalMode

__all__ = ["ModuleProxy", "ParameterProxy", "seen_through"]


def seen_through(executor: Executor, value: Any) -> Any:
    """A proxy for a parameter, or for a part of the model while its replicas can still be grouped."""
    if isinstance(value, nn.Parameter):
        return ParameterProxy(executor, value)
    if isinstance(value, nn.Module) and executor.execution.batching.replicas > 1 and not executor.is_compiled:
        return ModuleProxy(executor, value)
    return value


class ModuleProxy:
    """Behaves as the part does, and returns its parameters with `replicaGrouping`."""

    def __init__(self, executor: Executor, module: nn.Module) -> None:
        object.__setattr__(self, "_executor", executor)
        object.__setattr__(self, "_module", module)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the part, so that isinstance() works as without a wrapper."""
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


class ParameterProxy:
    """Behaves as the parameter does, and adds `replicaGrouping`."""

    def __init__(self, executor: Executor, parameter: nn.Parameter) -> None:
        self._executor = executor
        self._parameter = parameter

    def replicaGrouping(
        self,
        comm_group_type: CommGroupType,
        shards: int,
        variable_retrieval_mode: VariableRetrievalMode = VariableRetrievalMode.OnePerGroup,
    ) -> None:
        """Give each group of ``shards`` replicas its own slice of the parameter, along its leading dimension."""
        replicas = self._executor.execution.batching.replicas
        members = {CommGroupType.NoGrouping: 1, CommGroupType.All: replicas}.get(comm_group_type, shards)
        if variable_retrieval_mode is not VariableRetrievalMode.OnePerGroup and members != 1:
            raise createPoptorchError(
                f"{variable_retrieval_mode!r} is not supported: all replicas of a group hold the same values. Use "
                "VariableRetrievalMode.OnePerGroup."
            )
        if not self._parameter.dim():
            raise createPoptorchError("Scalars cannot be passed as per-replica weight tensor values")
        with translated():
            grouping = GROUPINGS.get(comm_group_type, GROUPINGS[CommGroupType.Consecutive])
            self._executor.group_replicas(self._name(), members, grouping)

    def _name(self) -> str:
        """The parameter's name in the program; a shared parameter has the name of its first owner."""
        named = self._executor.module.named_parameters()
        return next(name for name, parameter in named if parameter is self._parameter)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parameter, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_executor", "_parameter"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._parameter, name, value)

    def __repr__(self) -> str:
        return repr(self._parameter)

    def __len__(self) -> int:
        return len(self._parameter)

    def __getitem__(self, key: Any) -> Any:
        return self._parameter[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._parameter[key] = value

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Let torch's functions see the parameter itself."""
        return func(*map(_parameter_of, args), **{name: _parameter_of(value) for name, value in (kwargs or {}).items()})


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: ParameterProxy, *others: Any) -> Any:
        return getattr(self._parameter, name)(*map(_parameter_of, others))

    return apply


_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"]
_OTHERS = [
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "neg",
    "pos",
    "abs",
    "invert",
    "float",
    "int",
    "bool",
    "iter",
    "contains",
    "array",
]

# Python looks operators up in the class, where __getattr__ does not reach.
for _word in (*_BINARY, *(f"r{word}" for word in _BINARY), *_OTHERS):
    setattr(ParameterProxy, f"__{_word}__", _operator(f"__{_word}__"))


def _parameter_of(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_parameter_of, value))
    return value._parameter if isinstance(value, ParameterProxy) else value
