"""Writes into tensors during capture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from pilotage.torch_private import FakeTensor, TorchDispatchMode, schema_of


class WriteGuard(TorchDispatchMode):
    """While active, refuses writes into tensors with data: they would happen only once, at capture."""

    def __init__(self, error: Callable[[Tensor], Exception]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._error = error

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, unless it would change a tensor outside the program."""
        if schema_of(func).is_mutable:
            for tensor in written(func, args, kwargs or {}):
                if not isinstance(tensor, FakeTensor):
                    raise self._error(tensor)
        return func(*args, **(kwargs or {}))


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that an operation writes into."""
    schema = schema_of(func).arguments
    given = {**dict(zip((argument.name for argument in schema), args, strict=False)), **kwargs}
    values = [given.get(argument.name) for argument in schema if argument.is_write]
    tensors = [item for value in values for item in (value if isinstance(value, (list, tuple)) else (value,))]
    return [tensor for tensor in tensors if isinstance(tensor, Tensor)]
