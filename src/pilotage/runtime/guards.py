"""Refuses methods that would silently lose a wrapped model.

A wrapper that passed `.to(device)` on to its module would return the bare module, and training would silently leave the
accelerator, as has happened in published ports. Here it raises an error with the remedy.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

from pilotage.errors import LostModelError
from pilotage.runtime.executor import Executor


class GuardedModel:
    """Methods of a module that a wrapped model implements itself."""

    _executor: Executor

    def to(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("to")

    def cuda(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("cuda")

    def cpu(self) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("cpu")

    def hpu(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("hpu")

    def xpu(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("xpu")

    def ipu(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("ipu")

    def to_empty(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be moved."""
        self._refuse_move("to_empty")

    def train(self, mode: bool = True) -> Self:
        """Put the module in training mode, or out of it; a compiled program is captured again at the next call."""
        self._executor.set_mode(mode)
        return self

    def eval(self) -> Self:
        """Put the module in evaluation mode; a compiled program is captured again at the next call."""
        return self.train(False)

    def half(self) -> Self:
        """Turn the weights into float16, before compilation."""
        return self._convert("half")

    def bfloat16(self) -> Self:
        """Turn the weights into bfloat16, before compilation."""
        return self._convert("bfloat16")

    def float(self) -> Self:
        """Turn the weights into float32, before compilation."""
        return self._convert("float")

    def double(self) -> Self:
        """Turn the weights into float64, before compilation."""
        return self._convert("double")

    def type(self, dst_type: Any) -> Self:
        """Turn the weights into another type, before compilation."""
        return self._convert("type", dst_type)

    def _refuse_move(self, method: str) -> NoReturn:
        raise LostModelError(
            f".{method}() was called on a wrapped model. It already runs on its device, and moving it would train the "
            "bare module somewhere else instead. Leave the call out. To choose the device set PILOTAGE_BACKEND or the "
            f"backend option; to move the plain module call .{method}() on it before it is wrapped."
        )

    def _convert(self, method: str, *args: Any) -> Self:
        if self._executor.is_compiled:
            raise LostModelError(
                f".{method}() was called on a wrapped model that is already compiled; its program has the old type "
                f"built in. Call .{method}() on the module before it is wrapped, or destroy() first."
            )
        getattr(self._executor.module, method)(*args)
        return self


def executor_of(model: object) -> Executor | None:
    """What runs a wrapped model; None for anything that no program runs."""
    return model._executor if isinstance(model, GuardedModel) else None
