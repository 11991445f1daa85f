"""How long calls take, as PopTorch's counters tell it."""

from __future__ import annotations

from pilotage.program.structure import count_tensors
from pilotage.runtime.executor import Executor
from poptorch.enums import OutputMode
from poptorch.options import Options

__all__ = ["PerformanceCounters"]

Counters = dict[str, list[list[float]]]
Latency = tuple[float, float, float]

_NAMES = ("input", "input_complete", "output", "output_complete")


class PerformanceCounters:
    """Remembers when the last call began and ended; all of its micro-batches have the times of the call."""

    def __init__(self, options: Options, executor: Executor) -> None:
        self._options = options
        self._executor = executor
        self._last: tuple[float, float] | None = None

    def note(self, start: float, end: float) -> None:
        """Remember a call."""
        self._last = (start, end)

    def counters(self) -> Counters:
        """When inputs were sent and had arrived, and outputs were asked for and had arrived: by tensor and step."""
        if self._last is None or not self._executor.is_compiled:
            return {name: [[]] for name in _NAMES}
        start, end = self._last
        session = self._executor.session
        steps, results = (0, 0) if session.synthetic is not None else _steps_and_results(self._options)
        sent = [[start] * steps for _ in session.program.inputs]
        received = [[end] * results for _ in range(count_tensors(session.outputs))]
        each = (sent, sent, received, received)
        return {name: [list(times) for times in kind] for name, kind in zip(_NAMES, each, strict=True)}

    def latency(self, begin: str, end: str) -> Latency:
        """The least, greatest and mean time between two of the counters; zeros where there is nothing to tell."""
        counters = self.counters()
        begins = [min(times) for times in zip(*counters[begin], strict=True)]
        ends = [max(times) for times in zip(*counters[end], strict=True)]
        if not begins or not ends:
            return (0.0, 0.0, 0.0)
        # Outputs that a mode leaves out have no time of their own: they are taken to come with the next one kept.
        spans = [ends[place * len(ends) // len(begins)] - begin for place, begin in enumerate(begins)]
        return (min(spans), max(spans), sum(spans) / len(spans))


def _steps_and_results(options: Options) -> tuple[int, int]:
    """How many micro-batches a call has, and how many of them leave an output."""
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
