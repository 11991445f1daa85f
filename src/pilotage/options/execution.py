"""The options of running a program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from pilotage.errors import OptionError
from pilotage.options.batching import Batching
from pilotage.options.check import Check
from pilotage.options.choices import (
    Accumulation,
    LossRule,
    NonFiniteLoss,
    OutputMode,
    PipelineOrder,
    Pooling,
    Recomputation,
    Reduction,
    Tier,
)
from pilotage.options.locations import Locations


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """Everything that shapes a compiled program, apart from the model itself.

    Large because each field is one option.
    """

    batching: Batching = field(default_factory=Batching)

    outputs: OutputMode | None = None
    """None means FINAL in training and ALL in inference."""

    output_period: int = 1
    """The N of ``OutputMode.EVERY_N``."""

    reduction: Reduction = Reduction.MEAN

    pooling: Pooling = Pooling.POST
    """When to take the mean of gradients."""

    seed: int | None = None
    """Seeds random streams of the device's own; None uses torch's generator, as eager PyTorch would."""

    instance: int = 0
    """Which of the batching's instances this is."""

    broadcast_buffers: bool = False
    """Guarantee equal buffers on all replicas and instances: a forward that writes to a buffer is then refused."""

    attributes_once: bool = False
    """Let forward change plain tensor attributes once, at capture, with a warning; False refuses that."""

    backend: str | None = None
    """Name of the backend; None takes PILOTAGE_BACKEND, then the best one present."""

    cards: tuple[str, ...] | None = None
    """Devices that replicas and stages of this process may use; None takes PILOTAGE_CARDS, then all of them."""

    tier: Tier | None = None
    """How to execute all steps; None takes PILOTAGE_TIER, then the fastest tier."""

    cache_directory: Path | None = None
    """Where to keep compiled code; None takes PILOTAGE_CACHE_DIR, then the user's cache."""

    loss_rule: LossRule = LossRule.RETURNED
    """Which value of a forward pass is the loss."""

    nonfinite_loss: NonFiniteLoss = NonFiniteLoss.WARN
    """What happens when a loss is NaN or infinite."""

    check: Check = field(default_factory=Check.of)
    """When to compare the program with eager PyTorch."""

    accumulation: Accumulation | None = None
    """How to sum half-precision products; None follows torch's own settings."""

    recomputation: Recomputation = Recomputation.MARKED
    """What backward recomputes instead of keeping it."""

    locations: Locations = field(default_factory=Locations)
    """Where to keep tensors that are not in use."""

    pipeline: PipelineOrder | None = None
    """The order in which stages in separate processes work; None takes the one that needs the least memory."""

    synthetic_inputs: bool = False
    """Run on random inputs that are created on the device once, and ignore the host's inputs."""

    anchors: tuple[str, ...] = ()
    """Labels of values inside the program to return after its outputs."""

    name: str | None = None
    """The name of the program in logs."""

    shapes: int = 8
    """How many shapes of calls get a program each; 1 refuses calls of another shape than the first."""

    def shared_with(self, *, instance: int, instances: int) -> Self:
        """These options for one of several instances that share each update."""
        return replace(self, batching=replace(self.batching, instances=instances), instance=instance)

    def __post_init__(self) -> None:
        if self.output_period < 1:
            raise OptionError(f"output_period is {self.output_period}. It must be at least 1.")
        if self.shapes < 1:
            raise OptionError(f"shapes is {self.shapes}. It must be at least 1.")
        if not 0 <= self.instance < self.batching.instances:
            raise OptionError(f"instance is {self.instance}. It must be between 0 and {self.batching.instances - 1}.")
        iterations = self.batching.device_iterations
        if self.outputs is OutputMode.EVERY_N and self.output_period > iterations:
            raise OptionError(
                f"output_period is {self.output_period}, but a call has only {iterations} device iterations, so no "
                f"output would ever return. Choose a period from 1 to {iterations}."
            )
