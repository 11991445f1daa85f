"""Which branch of a condition operations belong to, while both branches are captured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor

from pilotage.engine import TorchDispatchMode, schema_of, storage_address, tree_leaves
from poptorch.poptorch_core import Error

_taken: ContextVar[Tensor | None] = ContextVar("poptorch_branch_taken", default=None)


def branch_taken() -> Tensor | None:
    """A tensor that tells at run time whether the operations captured now take effect; None means always."""
    return _taken.get()


@contextmanager
def branch(taken: Tensor) -> Iterator[None]:
    """Capture the operations of this block as ones that run only if ``taken`` is true."""
    outer = _taken.get()
    token = _taken.set(taken if outer is None else outer & taken)
    try:
        with _Contained():
            yield
    finally:
        _taken.reset(token)


class _Contained(TorchDispatchMode):
    """Refuses writes to tensors from outside of a branch, since both branches are computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = _storages([args, kwargs])
        for position, argument in enumerate(schema_of(func).arguments):
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            value = args[position] if position < len(args) else (kwargs or {}).get(argument.name)
            if is_written and _storages(value) - self._own:
                raise Error(
                    f"A branch of poptorch.cond() writes into a tensor from outside ({schema_of(func).name}). Return "
                    "the "
                    "new value from both branches instead, and write it after the condition."
                )
        result = func(*args, **(kwargs or {}))
        self._own |= _storages(result) - (given - self._own)
        return result


def _storages(value: Any) -> set[int]:
    return {storage_address(leaf.untyped_storage()) for leaf in tree_leaves(value) if isinstance(leaf, Tensor)}
