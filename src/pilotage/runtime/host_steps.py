"""Optimizers that are stepped on the host although a program trains their parameters.

Such a step has no effect: without gradients it changes nothing, and what it does change on the host is replaced by the
weights of the device. It is reported at the next call, so that host training followed by sending the weights is not
reported.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

from pilotage.program.graphs.source_lines import is_users
from pilotage.torch_private import DisableTorchFunctionSubclass


class HostSteps:
    """Watches the optimizers that hold parameters of one program, while the program is attached to its device."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        remedy: str | None,
        reports_own: bool = True,
        sends_edits: bool = False,
    ) -> None:
        """``remedy`` ends each report; without one nothing is watched.

        With ``sends_edits`` a step that changes weights has an effect, since they are sent before the next call.
        """
        # Weak: an optimizer may hold the executor that holds this.
        self._optimizer = None if optimizer is None else weakref.ref(optimizer)
        self.noted: dict[torch.optim.Optimizer, str] = {}
        """The optimizers that were stepped since the weights were last sent, each with the line of the step."""
        self.transfers = 0
        """How often weights were sent to the device, or returned to the host by detaching."""
        self._remedy = remedy
        self._reports_own = reports_own
        self._sends_edits = sends_edits
        self._parameters: frozenset[int] = frozenset()
        self._known: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        """Optimizers that need no further check (unrelated or reported), with the number of their groups."""

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The optimizer that the program trains with."""
        return None if self._optimizer is None else self._optimizer()

    @optimizer.setter
    def optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = weakref.ref(optimizer)

    def begin(self, parameters: Iterable[Tensor]) -> None:
        """The device trains these parameters from now on."""
        self._parameters = frozenset(map(id, parameters))
        self.sent()
        if self._remedy is not None:
            _HOOK.watch(self)

    def end(self) -> None:
        """The device no longer trains the parameters."""
        _HOOK.forget(self)
        self.sent()

    def ignore(self) -> None:
        """Stop watching."""
        self._remedy = None
        self.end()

    def sent(self) -> None:
        """The host's weights were sent to the device, including changes made on the host."""
        self.transfers += 1
        self.noted.clear()

    def note(self, optimizer: torch.optim.Optimizer, *, is_given: bool) -> None:
        """An optimizer was stepped; ``is_given`` says whether a program trains with it."""
        if self._known.get(optimizer) == len(optimizer.param_groups) or optimizer in self.noted:
            return
        shared = [p for group in optimizer.param_groups for p in group["params"] if id(p) in self._parameters]
        if not shared:
            self._known[optimizer] = len(optimizer.param_groups)
        elif self._sends_edits and have_gradients(shared):
            return
        elif not is_given or (optimizer is self.optimizer and self._reports_own) or have_gradients(shared):
            self.noted[optimizer] = where_called()

    def reports(self) -> list[str]:
        """Warnings to give at a call; each optimizer is reported once."""
        noted, self.noted = self.noted, {}
        for optimizer in noted:
            self._known[optimizer] = len(optimizer.param_groups)
        return [self._report(optimizer, where) for optimizer, where in noted.items()]

    def _report(self, optimizer: torch.optim.Optimizer, where: str) -> str:
        name = type(optimizer).__name__
        if optimizer is self.optimizer:
            trained = "each call of the wrapped model already updates the weights"
        elif self.optimizer is None:
            trained = "a program trains its parameters"
        else:
            trained = f"a program trains its parameters with the {type(self.optimizer).__name__} that it was given"
        return f"{name}.step(){where} has no effect: {trained}. {self._remedy}"


class _Hook:
    """torch's hook for all optimizers, registered only while some program trains."""

    def __init__(self) -> None:
        self._watches: weakref.WeakSet[HostSteps] = weakref.WeakSet()
        self._handle: RemovableHandle | None = None

    def watch(self, steps: HostSteps) -> None:
        self._watches.add(steps)
        if self._handle is None:
            self._handle = register_optimizer_step_post_hook(self._stepped)

    def forget(self, steps: HostSteps) -> None:
        self._watches.discard(steps)
        if not list(self._watches) and self._handle is not None:
            self._handle.remove()
            self._handle = None

    def knows(self, optimizer: torch.optim.Optimizer) -> bool:
        return any(steps.optimizer is optimizer for steps in list(self._watches))

    def _stepped(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watches = list(self._watches)
        is_given = self.knows(optimizer)
        for steps in watches:
            steps.note(optimizer, is_given=is_given)


_HOOK = _Hook()
"""Shared by all executors of a process: torch has one such hook for all optimizers."""


def is_given_to_a_program(optimizer: torch.optim.Optimizer) -> bool:
    """Whether an attached program trains with this optimizer."""
    return _HOOK.knows(optimizer)


def have_gradients(parameters: Iterable[Tensor]) -> bool:
    """Whether any of these parameters has a gradient on the host."""
    # Whether a stale weight has a gradient is known without fetching it.
    with DisableTorchFunctionSubclass():
        return any(parameter.grad is not None for parameter in parameters)


def where_called() -> str:
    """The line of the user's code that is running, as the end of a phrase."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f" at {frame.f_code.co_filename}:{frame.f_lineno}"
