"""Predicts the memory and time of a program on one kind of device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode
from pilotage.prediction.capturing.program import captured_for
from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.document import Pipeline
from pilotage.prediction.memory.needs import Needs, memory_needs
from pilotage.prediction.memory.stages import StageMap, stages_of
from pilotage.prediction.memory.tiles import fullest_tile
from pilotage.prediction.memory.update import UpdateTrace, update_trace
from pilotage.prediction.subject import Loading, Subject
from pilotage.prediction.timing.collectives import sum_seconds
from pilotage.prediction.timing.cost import Arithmetic, Cost
from pilotage.prediction.timing.costs import costs_of
from pilotage.prediction.timing.pipeline import StageSeconds, pipeline_schedule
from pilotage.prediction.trace.graphs import traced_steps
from pilotage.prediction.trace.operations import Category, Phase
from pilotage.program.program import Program
from pilotage.program.schedule import make_schedule

__all__ = ["Prediction", "Traced", "predicted", "traced", "traced_program"]


@dataclass(frozen=True, kw_only=True)
class Traced:
    """A program as operations and tensors, and the shape of its calls."""

    name: str
    update: UpdateTrace
    batching: Batching
    samples: int
    """Of one micro-batch."""

    trains: bool
    loading: Loading = field(default_factory=Loading)
    input_bytes: int = 0
    """The bytes of one micro-batch that are sent from the host."""

    eager: bool = False
    """Whether it runs operation by operation, each started by Python."""

    parameters: int = 0
    """The number of trained values; 0 if the module says it."""

    types: tuple[str, ...] = ()
    """The types of these parameters."""

    program: Program | None = field(default=None, compare=False, repr=False)
    """The captured program, if the operations were read from one."""


def traced(subject: Subject, model: DeviceModel) -> Traced:
    """Capture a program for a kind of device and read it."""
    return traced_program(subject, captured_for(subject, model.kind))


def traced_program(subject: Subject, program: Program) -> Traced:
    """Read a program that was captured from a subject."""
    execution, trains = subject.execution, subject.plan is not None
    mode = execution.outputs or (OutputMode.FINAL if trains else OutputMode.ALL)
    schedule = make_schedule(execution.batching, trains=trains, mode=mode, period=execution.output_period)
    return Traced(
        name=subject.name,
        update=update_trace(traced_steps(program), execution.batching, schedule.results),
        batching=execution.batching,
        samples=subject.samples,
        trains=trains,
        loading=subject.loading,
        input_bytes=sum(each.bytes for each in subject.micro_batch),
        program=program,
    )


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A program on a kind of device.

    Large because each figure of a report is one of its properties.
    """

    traced: Traced
    model: DeviceModel
    arithmetic: Arithmetic
    stages: StageMap
    needs: Needs
    costs: tuple[Cost, ...]
    """Of each operation, once."""

    offloads: bool = False

    @property
    def replicas(self) -> int:
        """The number of copies of the model."""
        return self.traced.batching.replicas * self.traced.batching.instances

    @property
    def devices(self) -> int:
        """How many devices the program uses."""
        return self.stages.count * self.replicas

    @property
    def peak_bytes(self) -> int:
        """The memory of the fullest device; on an IPU, that of its fullest tile times the number of tiles."""
        total = self.needs.fullest.peak_bytes
        tiles = self.model.tiles
        return total if tiles is None else fullest_tile(total, tiles) * tiles.count

    @property
    def fits(self) -> bool:
        """Whether the program fits the fullest device."""
        return self.peak_bytes <= self.model.memory.capacity_bytes

    @cached_property
    def stage_seconds(self) -> tuple[StageSeconds, ...]:
        """The time of each stage."""
        found = []
        for stage in range(self.stages.count):
            seconds = dict.fromkeys(Phase, 0.0)
            for operation, cost in zip(self.traced.update.operations, self.costs, strict=True):
                share = self._share(operation.stage, operation.phase, stage)
                seconds[operation.phase] += cost.seconds * share
            found.append(
                StageSeconds(
                    forward=seconds[Phase.FORWARD], backward=seconds[Phase.BACKWARD], update=seconds[Phase.UPDATE]
                )
            )
        return tuple(found)

    def _share(self, of_operation: int | None, phase: Phase, stage: int) -> float:
        if self.stages.count == 1:
            return 1.0
        if of_operation is not None:
            return float(of_operation == stage)
        return self.stages.weight_share[stage] if phase is Phase.UPDATE else float(stage == 0)

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The schedule of the stages; None if there is only one."""
        if self.stages.count == 1:
            return None
        return pipeline_schedule(self.stage_seconds, self.traced.batching.gradient_accumulation)

    @cached_property
    def by_part(self) -> dict[str, float]:
        """Seconds of one update by category."""
        parts = {"compute": 0.0, "exchange": 0.0, "synchronisation": 0.0, "launch": 0.0, "host": 0.0}
        for cost, times in zip(self.costs, self.traced.update.times, strict=True):
            for name in parts:
                parts[name] += getattr(cost, name) * times
        if self.pipeline is not None:
            busiest = max(self._busy(each) for each in self.stage_seconds)
            whole = sum(parts.values()) or 1.0
            parts = {name: seconds * busiest / whole for name, seconds in parts.items()}
            parts["bubble"] = max(0.0, self.pipeline.seconds - busiest)
        if self.traced.eager:
            # Python starts the operations, and a faster device waits for it.
            starting = sum(self.traced.update.times) * self.model.overheads.eager_seconds
            parts["host"] += max(0.0, starting - sum(parts.values()))
        parts["host"] += self._offloading() + self._per_call
        parts["collectives"] = sum_seconds(self._gradient_bytes, self.replicas, self.model.link)
        device = sum(parts.values())
        parts["loading"] = max(0.0, self._loading - device) if self.traced.loading.overlaps else self._loading
        return {name: seconds for name, seconds in parts.items() if seconds}

    @property
    def _loading(self) -> float:
        """The time of the host to prepare the samples of one update, for all replicas of this process."""
        batching = self.traced.batching
        samples = self.traced.samples * batching.gradient_accumulation * batching.replicas
        return self.traced.loading.sample_seconds * samples

    def _busy(self, stage: StageSeconds) -> float:
        return stage.work * self.traced.batching.gradient_accumulation + stage.update

    @property
    def _per_call(self) -> float:
        """The host's time for one call, divided among its updates."""
        batching, host = self.traced.batching, self.model.host
        inputs = self.traced.input_bytes * batching.gradient_accumulation
        copied = float(inputs)
        if self.model.tiles is not None:
            # The host prepares the next micro-batch while the device works; only the first one of a call waits.
            copied = self.traced.input_bytes / batching.device_iterations
        moving = copied / host.copy_bytes_per_second + inputs / host.link_bytes_per_second
        return self.model.overheads.call_seconds / batching.device_iterations + moving

    @property
    def _gradient_bytes(self) -> int:
        """The bytes that replicas sum: the pools, or gradients as large as the weights."""
        if not self.traced.trains:
            return 0
        stored = [each for each in self.traced.update.tensors if each.is_stored]
        pools = sum(each.bytes for each in stored if each.category is Category.GRADIENTS)
        weights = sum(each.bytes for each in stored if each.category is Category.WEIGHTS)
        return (pools or weights) // self.stages.count

    def _offloading(self) -> float:
        """The time to move offloaded tensors out of the device and back."""
        way = self.model.link.streaming_bytes_per_second or self.model.host.link_bytes_per_second
        tensors = self.traced.update.tensors
        moved = 2 * sum(each.bytes for each in tensors if each.on_host)
        if self.offloads:
            kept = sum(each.bytes for each in tensors if each.category is Category.ACTIVATIONS)
            moved += 2 * kept * self.traced.batching.gradient_accumulation
        return moved / way / self.stages.count

    @cached_property
    def update_seconds(self) -> float:
        """The time of one update, or of one call in inference."""
        return sum(self.by_part.values())

    @property
    def throughput(self) -> float:
        """Samples per second of all replicas."""
        batching = self.traced.batching
        samples = self.traced.samples * batching.gradient_accumulation * self.replicas
        return samples / self.update_seconds if self.update_seconds else 0.0


def predicted(
    found: Traced,
    model: DeviceModel,
    arithmetic: Arithmetic | None = None,
    *,
    assigned: Sequence[int | None] | None = None,
    offloads: bool = False,
    costs: Sequence[Cost] | None = None,
) -> Prediction:
    """Predict memory and time; ``assigned`` puts operations in stages other than their own.

    ``costs`` are those of the same operations on the same device, if they are known.
    """
    arithmetic = arithmetic or Arithmetic.of_torch()
    if assigned is not None:
        found = _in_stages(found, assigned)
    stages = stages_of(found.update)
    needs = memory_needs(found.update, model, stages, found.batching.gradient_accumulation, offloads=offloads)
    if costs is None:
        costs = costs_of(found.update.operations, model, arithmetic)
    return Prediction(
        traced=found,
        model=model,
        arithmetic=arithmetic,
        stages=stages,
        needs=needs,
        costs=tuple(costs),
        offloads=offloads,
    )


def _in_stages(found: Traced, assigned: Sequence[int | None]) -> Traced:
    update = found.update
    operations = tuple(
        replace(operation, stage=stage) for operation, stage in zip(update.operations, assigned, strict=True)
    )
    tensors = tuple(
        each if each.is_stored or not 0 <= each.first < len(assigned) else replace(each, stage=assigned[each.first])
        for each in update.tensors
    )
    return replace(found, update=replace(update, operations=operations, tensors=tensors))
