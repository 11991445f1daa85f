"""Makes the report of a profile from the measurements."""

from __future__ import annotations

import linecache
import platform
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import torch

from pilotage.prediction.document import (
    Device,
    Host,
    LayerMemory,
    LiveTensor,
    Measured,
    Memory,
    Operation,
    Peak,
    ProgramSummary,
    Range,
    Report,
    Source,
    Timeline,
)
from pilotage.profiling.clocks import has_queue
from pilotage.profiling.device_memory import capacity_of
from pilotage.profiling.findings import expensive_of, insights_of
from pilotage.profiling.observation import Sighting, Table
from pilotage.profiling.request import Request
from pilotage.profiling.subject import Subject
from pilotage.profiling.watch import ScriptWatch
from pilotage.version import VERSION

__all__ = ["report_of"]

_LARGEST = 50
"""Tensors of the peak that a report names."""

_MOST_POINTS = 2000
"""Points of a timeline."""


def report_of(request: Request, subject: Subject, watch: ScriptWatch) -> Report:
    """The report of the model that a script trains or infers with."""
    facts = subject.facts
    return Report(
        kind="profile",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        title=f"{facts.name} in {request.script.name}",
        command=(
            "pilotage",
            "profile",
            str(request.script),
            *(["--", *request.arguments] if request.arguments else []),
        ),
        versions={"pilotage": VERSION, "torch": torch.__version__, "python": platform.python_version()},
        machine={
            "system": f"{platform.system()} {platform.machine()}",
            "threads": str(torch.get_num_threads()),
            "device": device_title(facts.device),
        },
        program=ProgramSummary(
            name=facts.name,
            mode="training" if facts.trains else "inference",
            micro_batch=facts.micro_batch or None,
            device_iterations=facts.device_iterations,
            accumulation=facts.accumulation,
            replicas=facts.replicas,
            stages=facts.stages,
            parameters=facts.parameters,
            precision=facts.precision,
        ),
        devices=(device_of(subject, watch),),
    )


def device_of(subject: Subject, watch: ScriptWatch) -> Device:
    """The measurements on the device."""
    facts, table = subject.facts, subject.table or Table()
    measured = _measured(subject, table)
    operations = tuple(_operation(place, each) for place, each in enumerate(table.sightings))
    capacity = capacity_of(facts.device)
    margin = None if capacity is None or measured.peak_bytes is None else capacity - measured.peak_bytes
    return Device(
        name=facts.device.type,
        title=device_title(facts.device),
        capacity_bytes=capacity,
        fits=None if margin is None else margin >= 0,
        margin_bytes=margin,
        memory=_memory(table),
        measured=measured,
        operations=operations,
        host=Host(entries=watch.timeline.entries),
        expensive=expensive_of(operations),
        insights=insights_of(subject, watch, operations),
        assumptions=tuple(facts.notes),
    )


def device_title(device: torch.device) -> str:
    """The usual name of the device."""
    if device.type == "cpu":
        return f"CPU, {torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''}"
    if has_queue(device) and torch.cuda.is_available():
        return str(torch.cuda.get_device_name(device))
    return device.type


def _measured(subject: Subject, table: Table) -> Measured:
    seconds, samples, wall = sorted(subject.seconds), subject.facts.samples, max(subject.wall, 1e-9)
    peak = subject.peak if subject.peak is not None else (table.peak.bytes if table.peak is not None else None)
    counted = "as torch's allocator counts it" if subject.peak is not None else "of tensors, without what kernels use"
    return Measured(
        updates=len(seconds),
        update_seconds=Range(low=_at(seconds, 0.1), value=_at(seconds, 0.5), high=_at(seconds, 0.9)),
        throughput=(samples or 1) * len(seconds) / wall,
        loop_seconds=wall / max(1, len(seconds)),
        unit="samples/s" if samples else "updates/s",
        peak_bytes=peak,
        how=f"{subject.facts.how}. Whole updates were timed first, their median is shown; single operations in "
        f"{subject.request.looks} updates after them, each by its own clock. Memory is that {counted}. The throughput "
        "includes what the script does between updates.",
    )


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _operation(place: int, sighting: Sighting) -> Operation:
    what = sighting.what
    return Operation(
        index=place,
        name=what.name,
        phase=cast(Any, what.phase),
        module=what.module,
        stage=what.stage,
        times=sighting.runs,
        flops=what.flops,
        bytes=what.bytes,
        measured_seconds=sighting.median,
        measured_bytes=sighting.memory or None,
        output=what.output,
        source=source_of(what.line),
    )


def source_of(line: str | None) -> Source | None:
    """A place in a file, with the text of the line."""
    if line is None:
        return None
    file, _, number = line.rpartition(":")
    if not number.isdigit():
        return None
    text = linecache.getline(file, int(number)).strip()[:200]
    path = Path(file)
    here = Path.cwd()
    return Source(file=str(path.relative_to(here) if path.is_relative_to(here) else path), line=int(number), text=text)


def _memory(table: Table) -> Memory | None:
    if table.peak is None:
        return None
    layers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for each in table.peak.live:
        layers[each.module][each.category] += each.bytes
    largest = sorted(table.peak.live, key=lambda each: -each.bytes)[:_LARGEST]
    return Memory(
        by_category={name: size for name, size in table.peak.by_category.items() if size > 0},
        by_layer=tuple(
            LayerMemory(module=module, bytes=sum(sizes.values()), category_bytes=dict(sizes))
            for module, sizes in layers.items()
            if module
        ),
        timeline=_timeline(table),
        peak=Peak(
            operation=table.peak.operation,
            live=tuple(
                LiveTensor(
                    name=each.name,
                    bytes=each.bytes,
                    category=each.category,
                    module=each.module,
                    source=source_of(each.line),
                )
                for each in largest
            ),
        ),
    )


def _timeline(table: Table) -> Timeline:
    """The memory after each operation, or after the fullest of some neighbours if there are very many."""
    count, peak = len(table.sightings), -1 if table.peak is None else table.peak.operation
    size = -(-count // _MOST_POINTS)
    total = [sum(each.by_category.values()) for each in table.sightings]
    places = {max(range(first, min(first + size, count)), key=total.__getitem__) for first in range(0, count, size)}
    kept = sorted(places | ({peak} if 0 <= peak < count else set()))
    names = sorted({name for each in table.sightings for name in each.by_category})
    columns = {name: tuple(max(0, table.sightings[place].by_category.get(name, 0)) for place in kept) for name in names}
    return Timeline(operation=tuple(kept), bytes={name: each for name, each in columns.items() if any(each)})
