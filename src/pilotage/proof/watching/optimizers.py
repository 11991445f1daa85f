"""Optimizers and schedules of learning rates: where they are made, whether they are used, the rates that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import lr_scheduler

from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.watch import Watch

__all__ = ["OptimizerWatch", "WatchedOptimizer", "has_gradients", "parameters_of"]


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """All parameters of an optimizer."""
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def has_gradients(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a step of the optimizer changes anything."""
    # As loops, not as generators: this is asked several times in each step.
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                return True
    return False


class WatchedOptimizer:
    """What is known about one optimizer."""

    def __init__(self, number: int, optimizer: torch.optim.Optimizer, line: str | None, after: int) -> None:
        self.number = number
        self.after = after
        """How many updates came before it was made."""
        self.optimizer = optimizer
        self.line = line
        self.steps = self.updates = 0


class _Schedule:
    """What is known about one schedule."""

    def __init__(self, number: int, schedule: Any, line: str | None) -> None:
        self.number = number
        self.schedule = schedule
        self.line = line
        self.steps = 0
        self.is_made = False
        self.began_with: list[float] | None = None
        self.changed = 0
        """How many updates were made after it had changed the rate."""
        self.ignored = 0
        """How many of these updates applied another rate."""
        self.example: list[list[float]] = []
        """What it asked for and what was applied instead, the first time."""


class OptimizerWatch:
    """Follows all optimizers and schedules of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        # Strong references: an optimizer that is dropped without a step is one of those to report.
        self._known: dict[int, WatchedOptimizer] = {}
        self._schedules: dict[int, _Schedule] = {}
        self._followed: set[type] = set()
        """Classes of the script's own whose ``step`` is followed."""

    def install(self) -> None:
        """Follow optimizers and schedules from now on."""
        replace_function(torch.optim.Optimizer, "__init__", self._optimizer_made)
        kinds = [each for each in vars(lr_scheduler).values() if isinstance(each, type)]
        for kind in kinds:
            if issubclass(kind, lr_scheduler.LRScheduler):
                replace_function(kind, "__init__", self._schedule_made)
                replace_function(kind, "step", self._schedule_stepped)
        self._watch.summaries.append(self._summary)

    def known(self, optimizer: torch.optim.Optimizer) -> WatchedOptimizer:
        """What is known about an optimizer."""
        found = self._known.get(id(optimizer))
        if found is None:
            found = self._known[id(optimizer)] = WatchedOptimizer(
                len(self._known), optimizer, users_line(optimizer), self._watch.updates
            )
        return found

    def all(self) -> list[torch.optim.Optimizer]:
        """All optimizers."""
        return [each.optimizer for each in self._known.values()]

    def with_gradients(self) -> list[torch.optim.Optimizer]:
        """All optimizers whose step would change something."""
        return [each.optimizer for each in self._known.values() if has_gradients(each.optimizer)]

    def stepped(self, optimizer: torch.optim.Optimizer, *, works: bool) -> tuple[int, list[float]]:
        """An optimizer was stepped; ``works`` says whether it had gradients. Returns its number, and the rates."""
        found = self._known.get(id(optimizer)) or self.known(optimizer)
        found.steps += 1
        found.updates += works
        rates = [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]
        if self._schedules:
            self._note_schedules(found, rates)
        return found.number, rates

    def trained(self, optimizer: WatchedOptimizer | None, rates: list[float]) -> None:
        """A program made an update by an optimizer's rule, with these rates."""
        if optimizer is not None:
            optimizer.updates += 1
        if self._schedules:
            self._note_schedules(optimizer, rates)

    def _note_schedules(self, trained: WatchedOptimizer | None, rates: list[float]) -> None:
        """Compare what schedules ask for with what an update has applied."""
        made = [each for each in self._schedules.values() if each.is_made]
        asked = {id(each): _last_rates(each.schedule) for each in made}
        for each in made:
            own = self._known.get(id(getattr(each.schedule, "optimizer", None)))
            if own is not trained and own is not None and own.updates:
                continue  # Another optimizer has its turn.
            wanted = asked[id(each)]
            each.began_with = each.began_with or wanted
            if not _equal(wanted, each.began_with):
                each.changed += 1
                if not any(_equal(other, rates) for other in asked.values()):
                    each.ignored += 1
                    each.example = each.example or [wanted, rates]

    def _optimizer_made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self.known(optimizer)

        return init

    def _schedule_made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(schedule: Any, *args: Any, **kwargs: Any) -> None:
            inner = _schedules_in((*args, *kwargs.values()))
            if id(schedule) not in self._schedules:
                line = users_line(schedule)
                self._schedules[id(schedule)] = _Schedule(len(self._schedules), schedule, line)
            for each in inner:
                # The chain steps its inner schedules itself.
                self._schedules.pop(id(each), None)
            own = self._schedules[id(schedule)]
            is_outer, own.is_made = not own.is_made, True
            self._follow_steps(type(schedule))
            original(schedule, *args, **kwargs)
            own.steps = 0 if is_outer else own.steps

        return init

    def _follow_steps(self, kind: type) -> None:
        """Follow the steps of a schedule of the script's own, which may override ``step`` altogether."""
        for each in kind.__mro__:
            if each.__module__ != lr_scheduler.__name__ and each not in self._followed:
                self._followed.add(each)
                replace_function(each, "step", self._schedule_stepped)

    def _schedule_stepped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._schedules.get(id(schedule))
            if known is not None:
                known.steps += 1
            return original(schedule, *args, **kwargs)

        return step

    def _summary(self) -> dict[str, Any]:
        return {
            "optimizers": [
                {
                    "number": each.number,
                    "kind": type(each.optimizer).__name__,
                    "line": each.line,
                    "steps": each.steps,
                    "updates": each.updates,
                    "after": each.after,
                    "parameters": sum(parameter.numel() for parameter in parameters_of(each.optimizer)),
                }
                for each in self._known.values()
            ],
            "schedules": [
                {
                    "number": each.number,
                    "kind": type(each.schedule).__name__,
                    "line": each.line,
                    "steps": each.steps,
                    "optimizer": self._optimizer_of(each.schedule),
                    "changed": each.changed,
                    "ignored": each.ignored,
                    "example": each.example,
                }
                for each in self._schedules.values()
            ],
        }

    def _optimizer_of(self, schedule: Any) -> int | None:
        optimizer = getattr(schedule, "optimizer", None)
        return None if optimizer is None else self.known(optimizer).number


def _last_rates(schedule: Any) -> list[float]:
    """The rates that a schedule has asked for last.

    One that overrides ``step`` may only set them in its optimizer.
    """
    try:
        rates = schedule.get_last_lr()
    except (AttributeError, NotImplementedError):
        rates = [group["lr"] for group in schedule.optimizer.param_groups]
    return [float(rate) for rate in rates]


def _equal(left: list[float], right: list[float]) -> bool:
    if len(left) != len(right):
        left, right = left[:1], right[:1]
    return all(abs(a - b) <= 1e-6 * max(abs(a), abs(b)) for a, b in zip(left, right, strict=True))


def _schedules_in(values: tuple[Any, ...]) -> list[Any]:
    found = []
    for value in values:
        items = value if isinstance(value, (list, tuple)) else [value]
        found += [item for item in items if isinstance(item, lr_scheduler.LRScheduler)]
    return found
