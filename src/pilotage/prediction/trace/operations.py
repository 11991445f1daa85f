"""The operations of one step, and the lifetimes of its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pilotage.prediction.trace.work import Work

__all__ = ["Category", "Phase", "StepTrace", "TracedOperation", "TracedTensor"]


class Phase(Enum):
    """The part of an update that an operation belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


class Category(Enum):
    """The purpose of a tensor."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    """Values of forward that backward needs."""
    TEMPORARIES = "temporaries"
    INPUTS = "inputs"


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedOperation:
    """One operation."""

    name: str
    phase: Phase
    work: Work
    module: str = ""
    stage: int | None = None
    line: str | None = None
    """The user's line, as ``file:number``."""

    output: str = ""
    """Types and shapes of its results."""

    parameters: tuple[str, ...] = ()
    """Weights that it reads, for placing it in a stage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedTensor:
    """Memory with its lifetime: from one operation to another one, inclusive."""

    name: str
    bytes: int
    category: Category
    first: int
    """The operation that creates it; -1 if it is there before."""

    last: int
    """The last operation that needs it; the number of operations if it stays."""

    held: int = -1
    """For one of several results: the last operation at which the list that contains it still exists."""

    module: str = ""
    line: str | None = None
    stage: int | None = None
    on_host: bool = False
    """Whether it lies in the host's memory."""

    owner: str = ""
    """The parameter or buffer that it belongs to, for a tensor of the state."""

    is_stored: bool = False
    """Whether it belongs to the state, which stays from call to call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTrace:
    """One step of a program."""

    operations: tuple[TracedOperation, ...]
    tensors: tuple[TracedTensor, ...]
