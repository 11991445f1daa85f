"""Warns of optimizer settings that changed without effect, since no program reads them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import TypeVar

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from pilotage.engine import (
    Settings,
    code_around_steps,
    is_given_to_a_program,
    rates_of,
    step_post_hooks,
    step_pre_hooks,
)
from poptorch._logging import logger

__all__ = ["UnreadSettings"]

Kind = TypeVar("Kind")


class UnreadSettings:
    """Compares optimizers with what was last read of them, and warns once for each whose changes have no effect.

    PopTorch reads an optimizer only in `setOptimizer`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._settings = Settings(optimizer)
        self._others: list[tuple[weakref.ref[torch.optim.Optimizer], Settings]] = []
        """Optimizers of the same parameters that were not given to the model."""
        self._transfers = 0
        self._step: object = None
        """The step() that the optimizer was given in place of its class's own, by a scheduler for instance."""
        self._said_code: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._said: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()

    def read(self, optimizer: torch.optim.Optimizer) -> None:
        """Note that the model has read the current settings of an optimizer."""
        if optimizer is not self._optimizer:
            self._others = [(other, noted) for other, noted in self._others if other() is not optimizer]
            self._others.append((weakref.ref(self._optimizer), self._settings))
            self._optimizer, self._settings = optimizer, Settings(optimizer)
        self._settings.note(optimizer)
        self._note_others()

    def _note_others(self) -> None:
        for other, settings in self._others:
            if (optimizer := other()) is not None:
                settings.note(optimizer)

    def look_for_others(self, module: nn.Module) -> None:
        """Find the optimizers that hold parameters of the module; takes some 50 milliseconds for a million objects of
        Python, and is done at compilation."""
        parameters = frozenset(map(id, module.parameters()))
        known = [other() for other, _ in self._others]
        for optimizer in _living(torch.optim.Optimizer):
            if optimizer is not self._optimizer and optimizer not in known and _shares(optimizer, parameters):
                self._others.append((weakref.ref(optimizer), Settings(optimizer)))

    def check(self, transfers: int) -> None:
        """Warn of settings that have changed without being read; called before every run.

        ``transfers`` counts how often weights went from the host to the device or back: other optimizers may have
        trained on the host in between, where their schedules had an effect.
        """
        if transfers != self._transfers:
            self._transfers = transfers
            self._note_others()
        if self._settings.differ_from(self._optimizer):
            self._warn(self._optimizer, self._settings)
        step = vars(self._optimizer).get("step")
        if step is not self._step or step_pre_hooks(self._optimizer) or step_post_hooks(self._optimizer):
            self._step = step
            self._warn_of_code(self._optimizer)
        if self._others:
            for other, settings in self._others:
                optimizer = other()
                if optimizer is not None and settings.differ_from(optimizer) and not is_given_to_a_program(optimizer):
                    self._warn(optimizer, settings)

    def _warn_of_code(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer in self._said_code or (code := code_around_steps(optimizer)) is None:
            return
        self._said_code.add(optimizer)
        logger.warning(
            "The %s optimizer has %s, which has no effect: Poptorch does not run Python optimizer code directly. Do "
            "its work on the host before or after a call of the wrapped model.",
            type(optimizer).__name__,
            code,
        )

    def _warn(self, optimizer: torch.optim.Optimizer, settings: Settings) -> None:
        if optimizer in self._said:
            return
        self._said.add(optimizer)
        name = type(optimizer).__name__
        if optimizer is self._optimizer:
            remedy = "Call setOptimizer(optimizer) on the wrapped model after each change, such as scheduler.step()."
        else:
            own = type(self._optimizer).__name__
            remedy = (
                f"The model trains with another optimizer, the {own} that it was given. Let the schedule change that "
                "one, "
                f"and call setOptimizer(optimizer) after each scheduler.step()."
            )
        logger.warning(
            "%s has changed the %s optimizer (%s), which has no effect: the settings of an optimizer are read only by "
            "trainingModel and setOptimizer. %s",
            _cause(optimizer),
            name,
            _change(settings.rates, rates_of(optimizer)),
            remedy,
        )


def _change(before: list[float], after: list[float]) -> str:
    if before == after:
        return "another setting than the learning rate"
    changed = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    if not changed:
        return f"{len(after)} parameter groups instead of {len(before)}"
    return f"learning rate {changed[0][0]:g} -> {changed[0][1]:g}"


def _cause(optimizer: torch.optim.Optimizer) -> str:
    schedulers = {type(each).__name__ for each in _living(LRScheduler) if each.optimizer is optimizer}
    return " and ".join(sorted(schedulers)) or "The script"


def _shares(optimizer: torch.optim.Optimizer, parameters: frozenset[int]) -> bool:
    return any(id(parameter) in parameters for group in optimizer.param_groups for parameter in group["params"])


def _living(kind: type[Kind]) -> Iterator[Kind]:
    """All live instances of a class and its subclasses; torch keeps no list of its optimizers.

    A process may have millions of objects, so each of them is looked at by functions in C only.
    """
    kinds = {kind, *_derived(kind)}
    objects = gc.get_objects()
    return compress(objects, map(kinds.__contains__, map(type, objects)))


def _derived(kind: type[object]) -> Iterable[type[object]]:
    for each in kind.__subclasses__():
        yield each
        yield from _derived(each)
