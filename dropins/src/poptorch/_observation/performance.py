"""PopTorch's performance counters."""

from __future__ import annotations

from pilotage.engine import CallTimes, Executor, count_tensors
from poptorch.enums import OutputMode
from poptorch.options import Options

__all__ = ["PerformanceCounters"]

Counters = dict[str, list[list[float]]]
Latency = tuple[float, float, float]

_NAMES = ("input", "input_complete", "output", "output_complete")


class PerformanceCounters:
    """Records when inputs were sent and outputs computed, for each micro-batch if the device is synchronous."""

    def __init__(self, options: Options, executor: Executor) -> None:
        self._options = options
        self._executor = executor
        self.last_call: tuple[float, float] | None = None
        """When the last call began and ended."""

    def counters(self) -> Counters:
        """When inputs were sent and received, and outputs requested and received, by tensor and step."""
        if self.last_call is None or not self._executor.is_compiled:
            return {name: [[]] for name in _NAMES}
        executor = self._executor
        steps, results = (0, 0) if executor.has_synthetic_inputs else _steps_and_results(self._options)
        inputs, outputs = len(executor.program.inputs), count_tensors(executor.output_structure)
        begun, sent, finished, returned = self._moments(executor.times, results)
        return {
            "input": [[begun] * steps for _ in range(inputs)],
            "input_complete": [[sent] * steps for _ in range(inputs)],
            "output": [list(finished) for _ in range(outputs)],
            "output_complete": [[returned] * results for _ in range(outputs)],
        }

    def _moments(self, times: CallTimes | None, results: int) -> tuple[float, float, list[float], float]:
        """When inputs were sent and received, and outputs computed and received; a device's queue hides the rest."""
        assert self.last_call is not None
        start, end = self.last_call
        if times is None:
            return start, start, [end] * results, end
        # With anchored tensors the engine returns all outputs, and the output mode is applied afterwards.
        each_has_a_time = len(times.finished) == results
        finished = list(times.finished) if each_has_a_time else [times.finished[-1]] * results
        return times.begun, times.sent, finished, times.returned

    def latency(self, begin: str, end: str) -> Latency:
        """The minimum, maximum and mean time between two of the counters; zeros if there was no call."""
        counters = self.counters()
        begins = [min(times) for times in zip(*counters[begin], strict=True)]
        ends = [max(times) for times in zip(*counters[end], strict=True)]
        if not begins or not ends:
            return (0.0, 0.0, 0.0)
        # Outputs that the mode drops have no time: use the time of the next output that is kept.
        spans = [ends[place * len(ends) // len(begins)] - begin for place, begin in enumerate(begins)]
        return (min(spans), max(spans), sum(spans) / len(spans))


def _steps_and_results(options: Options) -> tuple[int, int]:
    """How many micro-batches a call has, and how many of them return an output."""
    iterations, replicas = options.device_iterations, options.replication_factor
    per_iteration = options.Training.gradient_accumulation * replicas
    match OutputMode(options.output_mode):
        case OutputMode.All:
            results = iterations * per_iteration
        case OutputMode.EveryN:
            results = iterations // options.output_return_period * per_iteration
        case _:
            results = replicas
    return iterations * per_iteration, results
