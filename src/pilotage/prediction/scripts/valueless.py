"""Modules without values: while a module is built, large tensors get a shape and a type, but no memory.

Everything else is real, since scripts read their data and options: a data set, the order of its samples, a list of
probabilities. What is computed from a tensor without values has none either. If a script asks for such a value, it
gets one: 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor, nn

from pilotage.prediction.replacing import replaced
from pilotage.torch_private import LOCAL_SCALAR, MODULE_APPLY, FakeTensor, FakeTensorMode, TorchDispatchMode

__all__ = ["Valueless", "fake_mode"]

_LARGE = 4096
"""Tensors of a module with at least this many elements get no memory."""

Observer = Callable[[Any, Sequence[Any], dict[str, Any], Any], None]
"""A function that is called with every operation, its arguments and its result."""


def fake_mode() -> FakeTensorMode:
    """The mode of all tensors without values; capture makes its own with the same settings."""
    return FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True, shape_env=None)


class Valueless(TorchDispatchMode):
    """While active, modules are built without values."""

    def __init__(self, observe: Observer | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mode = fake_mode()
        self.observe = observe
        self.values_read = 0
        """How often the script read a value that does not exist."""
        self._applied: dict[int, tuple[Tensor, Tensor]] = {}
        """Tensors that were moved or converted, with their new form, so that tied weights stay tied."""
        self._patch = ExitStack()

    def __enter__(self) -> Self:
        """Begin."""
        self._patch.enter_context(replaced(nn.Module, "_apply", self._apply(MODULE_APPLY)))
        self._patch.enter_context(replaced(FakeTensor, "__deepcopy__", _copied))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *reason: Any) -> None:
        """End."""
        super().__exit__(*reason)  # type: ignore[no-untyped-call]
        self._patch.close()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation, without values if it makes a large tensor of a module."""
        named = kwargs or {}
        if func is LOCAL_SCALAR and isinstance(args[0], FakeTensor):
            self.values_read += 1
            return _one(args[0].dtype)
        if not _has_tensors(args) and _elements(args, named) >= _LARGE and _builds_a_module():
            with self.mode:
                result = func(*args, **named)
        else:
            result = func(*args, **named)
        if self.observe is not None:
            self.observe(func, args, named, result)
        return result

    def _apply(self, original: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
        """Move or convert modules: torch writes into parameters, which those without values do not allow."""

        def apply(module: nn.Module, function: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
            for child in module.children() if recurse else ():
                child._apply(function)
            own = {**module._parameters, **module._buffers}
            if not any(isinstance(each, FakeTensor) for each in own.values()):
                return original(module, function, recurse=False)
            for table in (module._parameters, module._buffers):
                for name, tensor in table.items():
                    if tensor is not None:
                        table[name] = self._converted(tensor, function)  # type: ignore[assignment]
            return module

        return apply

    def _converted(self, tensor: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        if id(tensor) not in self._applied:
            with torch.no_grad():
                new = function(tensor)
            if new is not tensor and isinstance(tensor, nn.Parameter):
                new = nn.Parameter(new, requires_grad=tensor.requires_grad)
            self._applied[id(tensor)] = (tensor, new)
        return self._applied[id(tensor)][1]


def _copied(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a tensor without values; torch would look for its memory."""
    if id(tensor) not in memo:
        with torch.no_grad():
            new = tensor.detach().clone()
        is_parameter = isinstance(tensor, nn.Parameter)
        memo[id(tensor)] = nn.Parameter(new, tensor.requires_grad) if is_parameter else new
    found: Tensor = memo[id(tensor)]
    return found


def _one(dtype: torch.dtype) -> Any:
    if dtype == torch.bool:
        return True
    return 1.0 if dtype.is_floating_point else 1


def _has_tensors(values: Sequence[Any]) -> bool:
    return any(isinstance(each, Tensor) or (isinstance(each, list | tuple) and _has_tensors(each)) for each in values)


def _elements(args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    """How many elements a call of a function that creates a tensor requests."""
    largest = 0
    for each in (*args, *kwargs.values()):
        if isinstance(each, list | tuple) and each and all(isinstance(size, int) for size in each):
            count = 1
            for size in each:
                count *= size
            largest = max(largest, count)
        elif isinstance(each, int) and not isinstance(each, bool):
            largest = max(largest, each)
    return largest


def _builds_a_module() -> bool:
    """Whether the constructor of a module is running."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), nn.Module):
            return True
        frame = frame.f_back
    return False
