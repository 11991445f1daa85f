"""A captured computation as a value."""

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
    FORWARD = "forward"
    """One stage's part of forward, in a pipeline."""
    BACKWARD = "backward"
    """One stage's part of backward, in a pipeline."""

    # Enum's own hash is Python code, and members are looked up in every step of every call.
    __hash__ = object.__hash__


@dataclass(frozen=True, kw_only=True)
class Computation:
    """One action of a program: its Python function and, except in the eager tier, its graph."""

    sections: tuple[Section, ...]
    function: StepFunction | None = None
    """None if the program was read from a file."""

    graph: GraphModule | None = None
    whole: bool = False
    """Takes all copies of grouped parameters at once, not those of one replica."""

    returns_loss_check: bool = False
    """An extra last output says whether the loss is finite."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """An immutable captured computation: a training step, or inference.

    Large because passes, devices and files all read it, and each field is an independent fact about it.
    """

    layout: StateLayout
    computations: Mapping[Action, Computation]
    arguments: Structure
    inputs: tuple[TensorSpec, ...]
    """The tensors of one micro-batch."""

    outputs: Structure | None
    """What forward returns; None until an eager program has run."""

    constant_outputs: tuple[int, ...] = ()
    """Outputs that are the same in every run; a call returns each only once."""

    gradients: tuple[str, ...] = ()
    """Parameters whose gradients follow the outputs, in a program that will be cut into stages."""

    anchors: tuple[str, ...] = ()
    """Inner values that the program returns after its outputs."""

    output_ranks: tuple[int, ...] = ()
    """The number of dimensions of each output and anchor in one micro-batch; only set if there are anchors."""

    watched_operations: tuple[str, ...] = ()
    """The operations behind the flags of floating-point exceptions, if these are anchored."""

    plan: OptimizerPlan | None = None
    written_inputs: tuple[int, ...] = ()
    """Inputs that forward changes in place."""

    written_buffers: tuple[str, ...] = ()
    """Buffers that forward may change."""

    reassigned_buffers: tuple[str, ...] = ()
    draws_random_numbers: bool = False
    checks_loss: bool = False
    """The step raises before any update if the loss is not finite."""

    autocast: torch.dtype | None = None
    """The autocast type during capture; None if it was off."""

    warnings: tuple[str, ...] = ()

    @property
    def constants(self) -> tuple[int, ...]:
        """Outputs that are the same in every step; the eager tier knows them once it has run one."""
        if self.outputs is not None:
            return self.constant_outputs
        first = next(iter(self.computations.values())).function
        return () if first is None else first.findings.constant_outputs

    @property
    def trains(self) -> bool:
        """Whether the program updates weights."""
        return self.plan is not None
