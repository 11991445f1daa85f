"""What happens while programs are compiled and run, as values that listeners receive.

Progress bars, logs, reports and proofs listen; the engine never prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendChosen:
    """A backend was picked for a program."""

    backend: str
    device: str
    tier: str
    reason: str
    program: str | None = None
    """What the user calls the program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilationProgress:
    """A part of the compilation is done."""

    fraction: float
    """Between 0 and 1; 1 exactly once, at the end."""

    doing: str
    """What comes next, or "done"."""


# Not frozen: one is made in every call, and to make a frozen one takes three times as long.
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
    """The user should know something, though the result is right."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Noted:
    """Something that explains how the program runs."""

    message: str
    can_be_changed: bool = False
    """Whether it is about the machine, and the user may want to do something about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TierChanged:
    """A program goes on in another tier."""

    tier: str
    updates: int
    """Updates that were done before."""

    reason: str


Event: TypeAlias = BackendChosen | CompilationProgress | StepsRun | Warned | Noted | TierChanged
Listener: TypeAlias = Callable[[Event], None]


def tell_all(listeners: Sequence[Listener], event: Event) -> None:
    """Let each listener know."""
    for listener in listeners:
        listener(event)
