"""Writes into tensors during capture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pilotage.torch_private import (
    FakeTensor,
    TorchDispatchMode,
    disable_current_modes,
    schema_of,
    storage_address,
    tree_leaves,
)


class HostWrites:
    """Writes into tensors with data that happen once, at capture."""

    def __init__(self) -> None:
        self._read: set[int] = set()
        self._before: list[tuple[Tensor, Tensor]] = []

    def note_reads(self, tensors: Sequence[Tensor]) -> None:
        """Note which tensors with data the program reads: it would read them as they are at the end of the capture."""
        if any(isinstance(tensor, FakeTensor) for tensor in tensors):
            self._read.update(_address(tensor) for tensor in tensors if not isinstance(tensor, FakeTensor))

    def may_write(self, tensors: Sequence[Tensor], targets: Sequence[Tensor]) -> bool:
        """Whether an operation on these tensors can run now: it needs no data of the program, and changes none."""
        return not (
            any(isinstance(tensor, FakeTensor) for tensor in tensors)
            or any(_address(target) in self._read for target in targets)
        )

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], targets: Sequence[Tensor]) -> Any:
        """Run an operation on the host."""
        with disable_current_modes():
            self._before += [(target, target.detach().clone()) for target in targets]
            return func(*args, **kwargs)

    @property
    def any(self) -> bool:
        """Whether something was written."""
        return bool(self._before)

    def has_written(self, tensor: Tensor) -> bool:
        """Whether this tensor was written to on the host, and not in the program through a view."""
        return _address(tensor) in {_address(target) for target, _ in self._before}

    def undo(self) -> None:
        """Restore what was written, before another attempt."""
        with torch.no_grad(), disable_current_modes():
            for target, before in reversed(self._before):
                target.copy_(before)
        self._before, self._read = [], set()


class WriteGuard(TorchDispatchMode):
    """While active, refuses writes into tensors with data, unless they may happen on the host, once."""

    def __init__(self, error: Callable[[Tensor], Exception], host: HostWrites | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._error = error
        self._host = host

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, unless it would change a tensor outside the program."""
        kwargs = kwargs or {}
        if schema_of(func).is_mutable:
            targets = written(func, args, kwargs)
            outside = [tensor for tensor in targets if not isinstance(tensor, FakeTensor)]
            if outside:
                if self._host is not None and self._host.may_write(_tensors(args, kwargs), outside):
                    return self._host.run(func, args, kwargs, outside)
                raise self._error(outside[0])
        if self._host is not None:
            self._host.note_reads(_tensors(args, kwargs))
        return func(*args, **kwargs)


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that an operation writes into."""
    schema = schema_of(func).arguments
    given = {**dict(zip((argument.name for argument in schema), args, strict=False)), **kwargs}
    values = [given.get(argument.name) for argument in schema if argument.is_write]
    tensors = [item for value in values for item in (value if isinstance(value, (list, tuple)) else (value,))]
    return [tensor for tensor in tensors if isinstance(tensor, Tensor)]


def _tensors(*values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _address(tensor: Tensor) -> int:
    return storage_address(tensor.untyped_storage())
