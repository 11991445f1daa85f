"""Lines of a plain training loop that are left over: ``loss.backward()`` and ``optimizer.zero_grad()``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import LossError
from pilotage.runtime.host_steps import have_gradients, where_called
from pilotage.torch_private import DisableTorchFunctionSubclass

_REMEDY = "Remove loss.backward(), optimizer.zero_grad() and optimizer.step() from the loop."


class ReturnedLoss(Tensor):
    """A loss that a program has returned: ``backward()`` of it, and of what is computed from it, is refused."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute as usual, and mark numbers that are computed from a loss."""
        if func is Tensor.backward:
            raise LossError(
                "loss.backward() has nothing to do: each call of the wrapped model computes the loss, the gradients "
                f"and the update. {_REMEDY}"
            )
        with DisableTorchFunctionSubclass():
            if func in _AS_PLAIN_TENSORS:
                args = (args[0].as_subclass(Tensor), *args[1:])
            result = func(*args, **(kwargs or {}))
        if type(result) is Tensor and not result.requires_grad and func not in _AS_PLAIN_TENSORS:
            _mark(result)
        return result


_AS_PLAIN_TENSORS = frozenset(
    {Tensor.__repr__, Tensor.__format__, Tensor.__reduce_ex__, Tensor.__deepcopy__, Tensor.detach}
)
"""What is printed, saved, copied or detached is an ordinary tensor."""


def answer_backward(outputs: Iterable[Tensor]) -> None:
    """Make ``backward()`` of losses that a program has returned say what to remove.

    Meant for the first call: a loop that has the line has it from the start.
    """
    for output in outputs:
        if type(output) is Tensor:
            _mark(output)


def _mark(tensor: Tensor) -> None:
    if tensor.numel() == 1 and tensor.is_floating_point():
        tensor.__class__ = ReturnedLoss


def watch_zero_grad(optimizer: torch.optim.Optimizer, warn: Callable[[str], None]) -> None:
    """Warn once when ``zero_grad()`` is called although the host has no gradient.

    ``warn`` is a method, whose object is not kept alive.
    """
    warning, reference = weakref.WeakMethod(warn), weakref.ref(optimizer)

    def zero_grad(*args: Any, **kwargs: Any) -> None:
        own, report = reference(), warning()
        if own is None:
            return
        if not have_gradients(each for group in own.param_groups for each in group["params"]):
            vars(own).pop("zero_grad", None)
            if report is not None:
                where = where_called()
                report(
                    f"optimizer.zero_grad(){where} has no effect: a program keeps its gradients to itself. {_REMEDY}"
                )
        type(own).zero_grad(own, *args, **kwargs)

    vars(optimizer)["zero_grad"] = zero_grad
