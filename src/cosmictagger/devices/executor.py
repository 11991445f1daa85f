"""What the training loop and the modes need from whatever computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from cosmictagger.data.events import AnyBatch
from cosmictagger.networks.uresnet import UResNet


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one training step found."""

    loss: float
    metrics: Tensor
    """The numbers named by `cosmictagger.training.metrics.KEYS`, then those of the network's heads."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long its parts took, as far as they can be told apart: forward, loss, backward, optimizer, metrics, compilation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """What the network makes of one batch."""

    loss: float
    metrics: Tensor
    prediction: Tensor
    """The class of each pixel, uint8 (N, 3 planes, H, W), on the host."""

    compilation: float = 0.0
    """Seconds that were spent on compiling for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where and how the work was really done."""

    device: str
    backend: str
    tier: str
    precision: str
    optimizer: str
    updates: int
    """How often the optimizer has really stepped in this run."""

    compilation_seconds: float = 0.0
    peak_memory_bytes: int | None = None
    compiled: bool = False
    """Whether steps ran as a compiled program, and not operation by operation."""

    instances: int = 1
    """Processes that share each update."""

    replicas: int = 1
    """Copies of the network in each of them."""

    exchange: str = "none: one instance"
    """How gradients came together, and how that was checked."""

    problems: tuple[str, ...] = ()
    """What was asked for and did not happen."""


class Executor(Protocol):
    """Trains and evaluates one network on a device."""

    @property
    def network(self) -> UResNet:
        """The network; its weights may be newer on the device."""
        ...

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of some batches and update the weights once."""
        ...

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict, and compare with the labels."""
        ...

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to hold: ``state_dict`` and ``optimizer``, on the host."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state; one without an optimizer gives weights alone."""
        ...

    def placement(self) -> Placement:
        """Where and how the work was really done."""
        ...
