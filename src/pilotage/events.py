"""Events during compilation and execution, as values for listeners.

Progress bars, logs, reports and proofs listen; the engine never prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendChosen:
    """A backend was chosen for a program."""

    backend: str
    device: str
    tier: str
    reason: str
    program: str | None = None
    """The name that the user gave the program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilationProgress:
    """Part of the compilation is done."""

    fraction: float
    """Between 0 and 1; 1 exactly once, at the end."""

    doing: str
    """What comes next, or "done"."""


# Not frozen: every call creates one, and creating a frozen one takes three times as long.
@dataclass(kw_only=True, slots=True)
class StepsRun:
    """One host call has finished."""

    device: str
    tier: str
    micro_batches: int
    updates: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Warned:
    """A warning for the user; the result is still right."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Noted:
    """Information about how the program runs."""

    message: str
    can_be_changed: bool = False
    """Whether the user can do something about it, such as changing the machine's setup."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A program was compared with eager PyTorch, or the comparison was skipped."""

    summary: str
    agrees: bool | None
    """None if nothing was compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TierChanged:
    """A program continues in another tier."""

    tier: str
    updates: int
    """Updates before the change."""

    reason: str


Event: TypeAlias = BackendChosen | CompilationProgress | StepsRun | Warned | Noted | Checked | TierChanged
Listener: TypeAlias = Callable[[Event], None]


_Listener = TypeVar("_Listener", bound=Listener)


def between_calls(listener: _Listener) -> _Listener:
    """Mark a listener that has no use for `StepsRun`, so that a call does not have to call it."""
    listener.hears_calls = False  # type: ignore[attr-defined]
    return listener


def hears_calls(listener: Listener) -> bool:
    """Whether a listener gets a `StepsRun` after each call; all do unless they are marked."""
    return bool(getattr(listener, "hears_calls", True))


def tell_all(listeners: Sequence[Listener], event: Event) -> None:
    """Send an event to all listeners."""
    for listener in listeners:
        listener(event)
