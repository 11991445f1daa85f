"""The operations of one forward pass, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor

from pilotage.proof.watching.lines import users_line
from pilotage.torch_private import TorchDispatchMode, tree_flatten

__all__ = [
    "ForwardRecord",
    "Operation",
    "can_be_repeated",
    "computed_types",
    "is_in_compiled_call",
    "product_types",
    "tensors_of",
]

_PRODUCTS = ("convolution", "addmm", "mm", "bmm", "baddbmm", "linear", "_scaled_dot_product")

_MOST_ELEMENTS = 1 << 28
"""Larger forward passes are not recorded: they would be kept in memory."""


class Operation:
    """One operation of a forward pass."""

    __slots__ = ("args", "function", "kwargs", "line", "results")

    def __init__(self, function: Any, args: Any, kwargs: Any, results: Any, line: str | None) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.results = results
        self.line = line

    @property
    def name(self) -> str:
        """The name of the operation, without its overload."""
        return str(self.function.name()).removeprefix("aten::").split(".")[0]


class ForwardRecord(TorchDispatchMode):
    """Records the operations that run while it is entered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self._elements = 0
        self.is_complete = True
        self.has_ended = False
        """Whether operations still pass through, but are not recorded any more."""
        self._stance: AbstractContextManager[None] | None = None

    def __enter__(self) -> Self:
        """Record from here on. torch.compile compiles nothing meanwhile, and would raise with ``fullgraph=True``."""
        # The hooks of a compiled optimizer are traced, and must not change what is compiled.
        if "torch._dynamo" in sys.modules and not torch.compiler.is_compiling():
            self._stance = torch.compiler.set_stance("force_eager")
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """Record no more."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        if self._stance is not None:
            self._stance.__exit__(None, None, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        if self.is_complete and not self.has_ended:
            self._elements += sum(each.numel() for each in tree_flatten(results)[0] if isinstance(each, Tensor))
            if self._elements > _MOST_ELEMENTS:
                self.is_complete, self.operations = False, []
            else:
                self.operations.append(Operation(func, args, kwargs or {}, results, users_line()))
        return results


def is_in_compiled_call() -> bool:
    """Whether the caller runs inside a call of what torch.compile has returned.

    Such a call restores torch's dispatch at its end: a mode that was left inside would half be there again.
    """
    if "torch._dynamo" not in sys.modules:
        return False
    if torch.compiler.is_compiling():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and frame.f_globals.get("__name__") == "torch._dynamo.eval_frame":
            return True
        frame = frame.f_back
    return False


def computed_types(operations: list[Operation]) -> dict[str, int]:
    """In which types products were computed, and how many of them."""
    return product_types((each.name, each.results) for each in operations)


def product_types(computed: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """How many products have results of each type, among results with the names of their operations."""
    found: dict[str, int] = {}
    for name, result in computed:
        if name.startswith(_PRODUCTS) and isinstance(result, Tensor):
            kind = str(result.dtype).removeprefix("torch.")
            found[kind] = found.get(kind, 0) + 1
    return found


def can_be_repeated(operations: list[Operation]) -> bool:
    """Whether the tensors of recorded operations still have their numbers, all of them in this process.

    FSDP, for example, divides weights among processes, and takes the memory of the whole ones back after their use.
    """
    distributed = sys.modules.get("torch.distributed.tensor")
    divided = () if distributed is None else (distributed.DTensor,)
    return not any(
        isinstance(value, divided) or _has_lost_memory(value)
        for each in operations
        for value in tensors_of((each.args, each.kwargs, each.results))
    )


def _has_lost_memory(value: Tensor) -> bool:
    if value.layout is not torch.strided or not value.numel():
        return False
    try:
        return value.untyped_storage().nbytes() < value.element_size()
    except (RuntimeError, NotImplementedError):
        return False


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in a value."""
    return [each for each in tree_flatten(value)[0] if isinstance(each, Tensor)]
