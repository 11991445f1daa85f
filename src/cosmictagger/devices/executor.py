"""The interface that trains and evaluates one network, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from cosmictagger.data.events import AnyBatch
from cosmictagger.networks.uresnet import UResNet


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The result of one training step."""

    loss: float
    metrics: Tensor
    """The metrics named by `cosmictagger.training.metrics.KEYS`, then those of the network's heads."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds by part, as far as measured: forward, loss, backward, optimizer, metrics, compilation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The result of evaluating one batch."""

    loss: float
    metrics: Tensor
    prediction: Tensor
    """The class of each pixel, uint8 (N, 3 planes, H, W), on the host."""

    compilation: float = 0.0
    """Seconds spent on compiling for this batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where and how the work was actually done.

    Large because each field is a line of the report on where a run computed.
    """

    device: str
    backend: str
    tier: str
    precision: str
    optimizer: str
    updates: int
    """How often the optimizer actually stepped in this run."""

    compilation_seconds: float = 0.0
    peak_memory_bytes: int | None = None
    compiled: bool = False
    """Whether steps ran as a compiled program instead of eagerly."""

    instances: int = 1
    """Processes that share each update."""

    replicas: int = 1
    """Copies of the network in each instance."""

    exchange: str = "none: one instance"
    """How gradients were exchanged, and how that was checked."""

    reason: str = ""
    """Why this executor was chosen, where there was a choice."""

    problems: tuple[str, ...] = ()
    """Requests that were not honoured."""


class Executor(Protocol):
    """Trains and evaluates one network on a device."""

    @property
    def network(self) -> UResNet:
        """The network; its weights may be newer on the device."""
        ...

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of the batches and update the weights once."""
        ...

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict and compare with the labels."""
        ...

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint: ``state_dict`` and ``optimizer``, on the host."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; without an optimizer it holds only weights."""
        ...

    def placement(self) -> Placement:
        """Where and how the work was actually done."""
        ...
