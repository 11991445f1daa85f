"""Wrappers around models: where a script makes them, whether that fails, and whether it uses them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.programs import ProgramWatch
from pilotage.proof.watching.watch import Watch

if TYPE_CHECKING:
    from pilotage.runtime.executor import Executor

__all__ = ["WrapperWatch"]


class _Wrapper:
    """One wrapper that a script has made, or has tried to make."""

    def __init__(self, number: int, kind: str, line: str | None, *, trains: bool, error: str | None = None) -> None:
        self.number = number
        self.kind = kind
        self.line = line
        self.trains = trains
        self.error = error
        self.calls = 0
        self.made: object = None


class WrapperWatch:
    """Follows the wrappers of this process."""

    def __init__(self, watch: Watch, programs: ProgramWatch) -> None:
        self._watch = watch
        self._programs = programs
        self._known: list[_Wrapper] = []
        self._depth = 0
        programs.wrapper_of = self.number_of

    def install(self) -> None:
        """Follow torch's own wrapper, and write what is known from time to time."""
        replace_function(DistributedDataParallel, "__init__", self._distributed)
        replace_function(DistributedDataParallel, "forward", self._forward)
        self._watch.summaries.append(self._summary)

    def follow_functions(self, *names: str, trains: bool | None = None) -> Callable[[ModuleType], None]:
        """What to do with a module whose functions with these names wrap models."""

        def follow(module: ModuleType) -> None:
            for name in names:
                wraps = "inference" not in name if trains is None else trains
                label = f"{module.__name__.split('.')[0]}.{name}"
                replace_function(module, name, partial(self._wrapping, label, wraps))

        return follow

    def follow_optimizer_link(self, module: ModuleType) -> None:
        """PopTorch's link between a model and its optimizer was imported."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def set_optimizer(link: object, optimizer: torch.optim.Optimizer, executor: Executor) -> Any:
                self._programs.given(executor, optimizer)
                return original(link, optimizer, executor)

            return set_optimizer

        replace_function(module.OptimizerLink, "set", make)

    def number_of(self, executor: Executor) -> int | None:
        """The number of the wrapper that made an executor."""
        for each in self._known:
            if _executor_of(each.made) is executor:
                return each.number
        return None

    def _wrapping(self, kind: str, trains: bool, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return original(*args, **kwargs)
            line = users_line()
            self._depth += 1
            try:
                made = original(*args, **kwargs)
            except Exception as error:
                self._add(kind, line, trains=trains, error=f"{type(error).__name__}: {error}"[:200])
                raise
            finally:
                self._depth -= 1
            self._add(kind, line, trains=trains).made = made
            self._note_optimizer(made, args, kwargs)
            return made

        return wrap

    def _note_optimizer(self, made: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from torch.optim import Optimizer

        optimizer = next((each for each in (*args, *kwargs.values()) if isinstance(each, Optimizer)), None)
        executor = _executor_of(made)
        if executor is not None:
            self._programs.given(executor, optimizer)

    def _distributed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
            line = users_line(wrapper)
            try:
                original(wrapper, *args, **kwargs)
            except Exception as error:
                kind = "DistributedDataParallel"
                self._add(kind, line, trains=True, error=f"{type(error).__name__}: {error}"[:200])
                raise
            self._add("DistributedDataParallel", line, trains=True).made = wrapper

        return init

    def _forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> Any:
            if torch.is_grad_enabled():
                for each in self._known:
                    each.calls += each.made is wrapper
                self._watch.pending.exchanges += bool(wrapper.require_backward_grad_sync)
            return original(wrapper, *args, **kwargs)

        return forward

    def _add(self, kind: str, line: str | None, *, trains: bool, error: str | None = None) -> _Wrapper:
        found = _Wrapper(len(self._known), kind, line, trains=trains, error=error)
        self._known.append(found)
        self._watch.note("wrapper", number=found.number, kind=kind, line=line, trains=trains, error=error)
        return found

    def _summary(self) -> dict[str, Any]:
        return {
            "wrappers": [
                {
                    "number": each.number,
                    "kind": each.kind,
                    "line": each.line,
                    "trains": each.trains,
                    "error": each.error,
                    "calls": each.calls + _calls_of(each.made),
                }
                for each in self._known
            ]
        }


def _calls_of(made: object) -> int:
    """How many calls a program has run; 0 for other wrappers, which are counted here."""
    executor = _executor_of(made)
    return 0 if executor is None else executor.record.calls


def _executor_of(made: object) -> Executor | None:
    """What runs a wrapped model; None for wrappers without a program."""
    # Not imported here: a script that wraps no model of ours does not need the engine.
    guards = sys.modules.get("pilotage.runtime.guards")
    found: Executor | None = None if guards is None else guards.executor_of(made)
    return found
