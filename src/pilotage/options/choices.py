"""The named choices that options are made of."""

from __future__ import annotations

from enum import Enum


class OutputMode(Enum):
    """Which of the outputs that a call computes come back to the host."""

    ALL = "all"
    """Those of every micro-batch."""
    EVERY_N = "every_n"
    """Those of every N-th device iteration."""
    FINAL = "final"
    """Those of the last micro-batch, one for each replica."""
    SUM = "sum"
    """The sum over device iterations and accumulation, one for each replica."""


class Reduction(Enum):
    """How the gradients of an update's micro-batches become one."""

    MEAN = "mean"
    SUM = "sum"


class Pooling(Enum):
    """When the mean of an update's gradients is taken; the results differ by rounding alone."""

    RUNNING = "running"
    """The pool is a mean at every moment, which keeps it small: for pools of few bits."""
    POST = "post"
    """The pool is a sum, divided once before the update."""
    POST_AND_LOSS = "post_and_loss"
    """The loss is divided by the accumulation, the pool by the replicas."""


class ReplicaGrouping(Enum):
    """Which replicas form a group."""

    CONSECUTIVE = "consecutive"
    """Neighbours: 0, 1, ... are the first group."""
    ORTHOGONAL = "orthogonal"
    """Every n-th: replica k is in group k modulo the number of groups."""


class Tier(Enum):
    """How a captured step is executed."""

    EAGER = "eager"
    """Not captured: the module's Python runs at each step. For breakpoints and prints."""
    GRAPH = "graph"
    """The captured graph as it is, ready at once."""
    COMPILED = "compiled"
    """The captured graph as machine code."""


class LossRule(Enum):
    """Which value of a forward is trained on, unless it is marked."""

    RETURNED = "returned"
    """The entry ``loss`` of what forward returns, or else the only scalar in it that requires a gradient."""
    CALLED = "called"
    """The loss function that forward calls and whose result feeds no other loss, whatever is returned: PopTorch's rule."""


class PipelineOrder(Enum):
    """In which order the stages of a pipeline work through micro-batches."""

    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    """A stage takes turns between forward and backward, so that few micro-batches are on their way."""
    GPIPE = "gpipe"
    """All forwards, then all backwards."""
    SHARDED = "sharded"
    """Each micro-batch goes through all stages, forward and backward, before the next one begins."""


class Accumulation(Enum):
    """In which type the products of half-precision numbers are summed up, where a device leaves the choice."""

    FLOAT = "float"
    HALF = "half"


class Recomputation(Enum):
    """Which values of forward backward finds kept; it computes what lies between them again."""

    NONE = "none"
    """All of them: nothing is computed again."""
    MARKED = "marked"
    """Those that forward marks; all of them if it marks none."""
    STAGES = "stages"
    """Those that forward marks, and those that one stage hands to another."""


class NonFiniteLoss(Enum):
    """What happens when a loss is NaN or infinite."""

    WARN = "warn"
    """Report the step and the operation to blame once, and go on, as eager PyTorch would."""
    RAISE = "raise"
    """Stop before the weights are updated with it."""
    IGNORE = "ignore"
    """Do not look."""
