"""Lines of a plain training loop that are left over: ``loss.backward()`` and ``optimizer.zero_grad()``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import torch
from torch import Tensor

from pilotage.errors import LossError
from pilotage.runtime.host_steps import have_gradients, where_called

_REMEDY = "Remove loss.backward(), optimizer.zero_grad() and optimizer.step() from the loop."


def refuse_backward(*args: Any, **kwargs: Any) -> NoReturn:
    """Say what to remove."""
    raise LossError(
        "loss.backward() has nothing to do: each call of the wrapped model computes the loss, the gradients and the "
        f"update. {_REMEDY}"
    )


def answer_backward(outputs: Iterable[Tensor]) -> None:
    """Let ``backward()`` of losses that a program has returned say what to remove.

    Meant for the first call: a loop that has the line has it from the start.
    """
    for output in outputs:
        if output.numel() == 1 and output.is_floating_point():
            # An attribute of this one tensor: its copies and what is computed from it do not have it.
            vars(output)["backward"] = refuse_backward


def watch_zero_grad(optimizer: torch.optim.Optimizer, warn: Callable[[str], None]) -> None:
    """Warn once when ``zero_grad()`` is called although there is no gradient.

    ``warn`` is a method, whose object is not kept alive.
    """
    told, held = weakref.WeakMethod(warn), weakref.ref(optimizer)

    def zero_grad(*args: Any, **kwargs: Any) -> None:
        own, report = held(), told()
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
