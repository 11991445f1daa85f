"""What the user decided about running a program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from pilotage.errors import OptionError
from pilotage.options.batching import Batching
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
    """Everything that shapes a compiled program, apart from the model itself."""

    batching: Batching = field(default_factory=Batching)

    output_mode: OutputMode | None = None
    """None means FINAL in training and ALL in inference."""

    output_period: int = 1
    """The N of ``OutputMode.EVERY_N``."""

    gradient_reduction: Reduction = Reduction.MEAN

    pooling: Pooling = Pooling.POST
    """When a mean of gradients is taken."""

    random_seed: int | None = None
    """Gives the device random streams of its own; None shares torch's generator, as eager PyTorch would."""

    instance: int = 0
    """Which of the batching's instances this is."""

    broadcast_buffers: bool = True
    """Replicas are promised equal buffers, so a buffer written in forward is refused with several replicas."""

    backend: str | None = None
    """Name of the backend; None takes PILOTAGE_BACKEND, then the best one present."""

    cards: tuple[str, ...] | None = None
    """Devices that replicas and stages of this process may use; None takes PILOTAGE_CARDS, then all that the backend sees."""

    tier: Tier | None = None
    """How the program is executed, from the first step to the last; None takes PILOTAGE_TIER, then what is fastest."""

    cache_directory: Path | None = None
    """Where compiled code is kept; None takes PILOTAGE_CACHE_DIR, then the user's own cache."""

    loss_rule: LossRule = LossRule.RETURNED
    """Which value of a forward is the loss."""

    nonfinite_loss: NonFiniteLoss = NonFiniteLoss.WARN
    """What happens when a loss is NaN or infinite."""

    accumulation: Accumulation | None = None
    """How half-precision products are summed up; None leaves that to torch's own settings."""

    recomputation: Recomputation = Recomputation.MARKED
    """What backward computes again instead of having it kept."""

    locations: Locations = field(default_factory=Locations)
    """Where tensors are kept while nobody works on them."""

    pipeline: PipelineOrder | None = None
    """In which order stages in processes of their own work; None takes the one that needs the least memory."""

    synthetic_inputs: bool = False
    """Run on numbers that are made up on the device once, and leave the host's inputs where they are."""

    anchors: tuple[str, ...] = ()
    """Labels of values inside of the program that come back behind its outputs."""

    name: str | None = None
    """What the program is called in logs."""

    def shared_with(self, *, instance: int, instances: int) -> Self:
        """The same, for one of several instances that share each update."""
        return replace(self, batching=replace(self.batching, instances=instances), instance=instance)

    def __post_init__(self) -> None:
        if self.output_period < 1:
            raise OptionError(f"output_period is {self.output_period}. It has to be at least 1.")
        if not 0 <= self.instance < self.batching.instances:
            raise OptionError(
                f"instance is {self.instance}. It has to lie between 0 and {self.batching.instances - 1}."
            )
        iterations = self.batching.device_iterations
        if self.output_mode is OutputMode.EVERY_N and self.output_period > iterations:
            raise OptionError(
                f"output_period is {self.output_period}, but a call has {iterations} device iterations, so that no output would "
                f"ever come back. Choose a period from 1 to {iterations}."
            )
