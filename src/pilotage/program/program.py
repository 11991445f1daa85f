"""The captured computation, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import torch
from torch.fx import GraphModule

from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import Section, StateLayout
from pilotage.program.specification import TensorSpec
from pilotage.program.step_function import StepFunction
from pilotage.program.structure import Structure


class Action(Enum):
    """What one step of a schedule does."""

    INFER = "infer"
    TRAIN = "train"
    """From inputs to new weights."""
    ACCUMULATE = "accumulate"
    """From inputs to pooled gradients."""
    UPDATE = "update"
    """From pooled gradients to new weights."""

    # Enum's own hash is Python code, and members are looked up in every step of every call.
    __hash__ = object.__hash__


@dataclass(frozen=True, kw_only=True)
class Computation:
    """One action of a program: its Python function and, unless the tier is eager, its graph."""

    sections: tuple[Section, ...]
    function: StepFunction | None = None
    """None where the program was read from a file."""

    graph: GraphModule | None = None
    whole: bool = False
    """Takes all copies of grouped parameters at once, and not those of one replica."""

    returns_loss_check: bool = False
    """Its last output, which nobody asked for, tells whether the loss is finite."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """An immutable captured computation: a training step, or inference."""

    layout: StateLayout
    computations: Mapping[Action, Computation]
    arguments: Structure
    inputs: tuple[TensorSpec, ...]
    """One micro-batch."""

    outputs: Structure | None
    """What forward returned; None as long as an eager program has not run."""

    constant_outputs: tuple[int, ...] = ()
    """Outputs that are the same in every run; a call returns each of them once, whatever its schedule."""

    gradients: tuple[str, ...] = ()
    """Parameters whose gradients come behind the outputs, where the program is made to be cut into stages."""

    anchors: tuple[str, ...] = ()
    """Values inside of the program that come back behind its outputs."""

    output_ranks: tuple[int, ...] = ()
    """How many dimensions outputs and anchors have in one micro-batch; known where there are anchors."""

    watched_operations: tuple[str, ...] = ()
    """What the flags of floating-point exceptions stand for, where they are anchored."""

    plan: OptimizerPlan | None = None
    written_inputs: tuple[int, ...] = ()
    """Inputs that forward changes in place."""

    written_buffers: tuple[str, ...] = ()
    """Buffers that forward may change."""

    reassigned_buffers: tuple[str, ...] = ()
    draws_random_numbers: bool = False
    checks_loss: bool = False
    """A loss that is not finite stops the step before anything is updated."""

    autocast: torch.dtype | None = None
    """What autocast turned operations into while forward was captured; None where it was off."""

    warnings: tuple[str, ...] = ()

    @property
    def trains(self) -> bool:
        """Whether the program updates weights."""
        return self.plan is not None
