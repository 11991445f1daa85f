"""A prediction as the part of the document about one device."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.prediction.describing.expensive import expensive_of, insights_of
from pilotage.prediction.describing.memory import memory_of
from pilotage.prediction.describing.sources import source_of
from pilotage.prediction.document import Change, Device, Operation, Range, Throughput, Time
from pilotage.prediction.prediction import Prediction

__all__ = ["described"]


def described(prediction: Prediction, changes: Sequence[Change] = ()) -> Device:
    """What a report shows about one device."""
    model = prediction.model
    return Device(
        name=model.name,
        title=model.title,
        count=prediction.devices,
        capacity_bytes=model.memory.capacity_bytes,
        fits=prediction.fits,
        margin_bytes=model.memory.capacity_bytes - prediction.peak_bytes,
        peak_bytes=_range(prediction.peak_bytes, model.uncertainty.memory),
        memory=memory_of(prediction),
        time=_time(prediction),
        operations=_operations(prediction),
        pipeline=prediction.pipeline,
        expensive=expensive_of(prediction),
        changes=tuple(changes),
        insights=insights_of(prediction),
        assumptions=_assumptions(prediction),
    )


def _range(value: float, uncertainty: float) -> Range:
    return Range(low=value / (1 + uncertainty), value=value, high=value * (1 + uncertainty))


def _time(prediction: Prediction) -> Time:
    uncertainty = prediction.model.uncertainty.time
    rate = prediction.throughput
    return Time(
        update_seconds=_range(prediction.update_seconds, uncertainty),
        by_part=prediction.by_part,
        throughput=Throughput(low=rate / (1 + uncertainty), value=rate, high=rate * (1 + uncertainty)),
    )


def _operations(prediction: Prediction) -> tuple[Operation, ...]:
    update = prediction.traced.update
    return tuple(
        Operation(
            index=index,
            name=operation.name,
            phase=operation.phase.value,
            module=operation.module,
            stage=operation.stage,
            times=times,
            flops=operation.work.flops,
            bytes=operation.work.bytes,
            seconds=cost.seconds,
            output=operation.output,
            source=source_of(operation.line),
        )
        for index, (operation, cost, times) in enumerate(
            zip(update.operations, prediction.costs, update.times, strict=True)
        )
    )


def _assumptions(prediction: Prediction) -> tuple[str, ...]:
    model = prediction.model
    found = [*model.assumptions]
    if model.tiles is not None:
        found.append(
            f"The fullest tile has {model.tiles.imbalance:.2f} times the mean; code counts "
            f"{model.tiles.operation_code_bytes // 1000} kB for each different operation, on all tiles together."
        )
    if prediction.stages.count > 1:
        found.append("Stages work in the order one forward, one backward, each on its own device.")
    if prediction.replicas > 1:
        found.append("Each replica has its own device.")
    if prediction.traced.loading.sample_seconds:
        seconds = prediction.traced.loading.sample_seconds
        found.append(f"The host needs {seconds * 1e6:.0f} µs to load a sample, as it did here.")
    else:
        found.append("Batches are ready when the device needs them.")
    found.append(
        f"Memory may be off by {model.uncertainty.memory:.0%} and time by {model.uncertainty.time:.0%}, up or down."
    )
    return tuple(found)
