"""Options that only affect training."""

from __future__ import annotations

from typing import Self

from poptorch._errors import require
from poptorch._options_impl import OptionsDict
from poptorch.enums import MeanReductionStrategy, ReductionType
from poptorch.options.popart import _PopartOptions


class _TrainingOptions(OptionsDict):
    """How gradients are pooled into an update."""

    def __init__(self, popart: _PopartOptions) -> None:
        self._popart = popart
        super().__init__(
            gradient_accumulation=1,
            accumulation_and_replication_reduction_type=ReductionType.Mean,
            meanAccumulationAndReplicationReductionStrategy=MeanReductionStrategy.Post,
        )

    def gradientAccumulation(self, gradient_accumulation: int) -> Self:
        """Micro-batches whose gradients are pooled, per replica, before one update."""
        require(
            isinstance(gradient_accumulation, int) and gradient_accumulation > 0,
            f"gradientAccumulation must be a whole number of at least 1, not {gradient_accumulation!r}.",
        )
        return self.set(gradient_accumulation=gradient_accumulation)

    def accumulationAndReplicationReductionType(self, reduction_type: ReductionType) -> Self:
        """Whether the pooled gradients are averaged or summed."""
        if not isinstance(reduction_type, ReductionType) or reduction_type is ReductionType.NoReduction:
            raise ValueError(
                f"Gradients cannot be reduced by {reduction_type!r}. Choose poptorch.ReductionType.Mean or .Sum."
            )
        return self.set(accumulation_and_replication_reduction_type=reduction_type)

    def setMeanAccumulationAndReplicationReductionStrategy(
        self, mean_reduction_strategy: MeanReductionStrategy
    ) -> Self:
        """When the sum of gradients is divided by their number."""
        return self.set(meanAccumulationAndReplicationReductionStrategy=mean_reduction_strategy)

    def setAutomaticLossScaling(self, enabled: bool) -> Self:
        """Let the loss scale of a half-precision model follow the size of its gradients."""
        require(isinstance(enabled, bool), f"setAutomaticLossScaling takes True or False, not {enabled!r}.")
        self._popart.set("automaticLossScalingSettings.enabled", enabled)
        return self

    def setConvolutionDithering(self, enabled: bool) -> Self:
        """Start each convolution on another tile, to spread their memory."""
        require(isinstance(enabled, bool), f"setConvolutionDithering takes True or False, not {enabled!r}.")
        self._popart.merge("convolutionOptions", {"enableConvDithering": "true" if enabled else "false"})
        return self
