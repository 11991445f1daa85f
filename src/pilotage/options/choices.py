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


class Tier(Enum):
    """How a captured step is executed."""

    EAGER = "eager"
    """Not captured: the module's Python runs at each step. For breakpoints and prints."""
    GRAPH = "graph"
    """The captured graph as it is."""


class NonFiniteLoss(Enum):
    """What happens when a loss is NaN or infinite."""

    WARN = "warn"
    """Report the step and the operation to blame once, and go on, as eager PyTorch would."""
    RAISE = "raise"
    """Stop before the weights are updated with it."""
    IGNORE = "ignore"
    """Do not look."""
