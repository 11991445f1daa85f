"""Enumerations that options use."""

from __future__ import annotations

from enum import Enum


class OutputMode(Enum):
    """Which outputs of a call return to the host."""

    ALL = "all"
    """Those of every micro-batch."""
    EVERY_N = "every_n"
    """Those of every N-th device iteration."""
    FINAL = "final"
    """Those of the last micro-batch of each replica."""
    SUM = "sum"
    """The sum over device iterations and accumulation, for each replica."""


class Reduction(Enum):
    """How to combine the gradients of an update's micro-batches."""

    MEAN = "mean"
    SUM = "sum"


class Pooling(Enum):
    """When to take the mean of an update's gradients; the results differ only by rounding."""

    RUNNING = "running"
    """The pool is always a mean, which keeps its values small: for pools of few bits."""
    POST = "post"
    """The pool is a sum, divided once before the update."""
    POST_AND_LOSS = "post_and_loss"
    """The loss is divided by the accumulation, the pool by the replicas."""


class ReplicaGrouping(Enum):
    """Which replicas form a group."""

    CONSECUTIVE = "consecutive"
    """Neighbours: 0, 1, ... form the first group."""
    ORTHOGONAL = "orthogonal"
    """Every n-th: replica k is in group k modulo the number of groups."""


class Tier(Enum):
    """How a captured step is executed."""

    EAGER = "eager"
    """Not captured: the module's Python code runs at each step. For breakpoints and prints."""
    GRAPH = "graph"
    """The captured graph itself, ready at once."""
    COMPILED = "compiled"
    """The captured graph as machine code."""


class LossRule(Enum):
    """Which value of a forward pass is the loss, unless one is marked."""

    RETURNED = "returned"
    """The entry ``loss`` of the returned value, or else its only scalar that requires a gradient."""
    CALLED = "called"
    """The called loss function whose result feeds no other loss, whatever forward returns: PopTorch's rule."""


class PipelineOrder(Enum):
    """In which order the stages of a pipeline process micro-batches."""

    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    """A stage alternates between forward and backward, so that few micro-batches are in flight."""
    GPIPE = "gpipe"
    """All forwards, then all backwards."""
    SHARDED = "sharded"
    """Each micro-batch passes all stages, forward and backward, before the next one starts."""


class Accumulation(Enum):
    """The type in which products of half-precision numbers are summed, if the device has a choice."""

    FLOAT = "float"
    HALF = "half"


class Recomputation(Enum):
    """Which values of forward are kept for backward, which recomputes the rest."""

    NONE = "none"
    """All of them: nothing is recomputed."""
    MARKED = "marked"
    """Those that forward marks; all if it marks none."""
    STAGES = "stages"
    """Those that forward marks, and those that stages pass to each other."""


class NonFiniteLoss(Enum):
    """What happens when a loss is NaN or infinite."""

    WARN = "warn"
    """Report the step and the operation once and continue, as eager PyTorch would."""
    RAISE = "raise"
    """Raise before the weights are updated with it."""
    IGNORE = "ignore"
    """Do not check."""
