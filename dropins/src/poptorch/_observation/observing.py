"""What an executor shows of its program: names, anchored tensors, times, operations."""

from __future__ import annotations

from datetime import timedelta

from torch import Tensor

from pilotage.engine import Executor
from poptorch._errors import createPoptorchError, require, translated
from poptorch._observation.anchors import Anchors
from poptorch._observation.performance import PerformanceCounters
from poptorch._observation.progress import ProgressBar
from poptorch._observation.tensor_names import intermediate_representation, names_in

__all__ = ["Observing"]

Latency = tuple[float, float, float]


class Observing:
    """Methods of an executor that read its program without changing it."""

    engine: Executor
    _anchors: Anchors
    _bar: ProgressBar | None
    _counts_cycles: bool
    _performance: PerformanceCounters

    def getTensorNames(self) -> list[str]:
        """The names of all tensors of the compiled program; `Options.anchorTensor` takes them."""
        require(self.engine.is_compiled, "The model has not been compiled, so its tensors have no names yet.")
        return names_in(self.engine.captured, self.engine.plan)

    def getAnchoredTensor(self, short_name: str) -> Tensor:
        """The tensor that `Options.anchorTensor` gave this name, as of the last call."""
        return self._anchors.value(short_name)

    def getPerfCounters(self) -> dict[str, list[list[float]]]:
        """When the inputs of the last call were sent and its outputs returned, by tensor and step, in seconds."""
        return self._performance.counters()

    def getHostIpuLatency(self) -> Latency:
        """The minimum, maximum and mean time to send inputs."""
        return self._performance.latency("input", "input_complete")

    def getComputeLatency(self) -> Latency:
        """The minimum, maximum and mean time from inputs to outputs on the device."""
        return self._performance.latency("input_complete", "output")

    def getIpuHostLatency(self) -> Latency:
        """The minimum, maximum and mean time to return outputs."""
        return self._performance.latency("output", "output_complete")

    def getLatency(self) -> Latency:
        """The minimum, maximum and mean time from sending inputs to receiving outputs."""
        return self._performance.latency("input", "output_complete")

    def compilationTime(self) -> timedelta:
        """How long the compilation took."""
        if not self.engine.is_compiled:
            raise createPoptorchError("Please compile the model before obtaining compilation time.")
        if self._bar is None:
            raise createPoptorchError(
                "The compilation was not timed. Set poptorch.Options().showCompilationProgressBar(True)."
            )
        return timedelta(seconds=self.engine.record.compilation_seconds)

    def cycleCount(self) -> int:
        """Raise: only IPU hardware counts cycles."""
        if not self._counts_cycles:
            raise createPoptorchError(
                "Cycle count logging is disabled. Please set option logCycleCount to True to enable."
            )
        raise createPoptorchError("Please run the model at least once before obtaining cycle count.")

    def _debugGetPopartIR(self) -> str:
        """The operations of the compiled program, as JSON."""
        with translated():
            return intermediate_representation(self.engine.captured)
