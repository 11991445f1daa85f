"""A profile in the format of Chrome's trace viewer, which Perfetto opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pilotage.prediction.document import Device, Report
from pilotage.profiling.timeline import UPDATES
from pilotage.whole_files import write_whole

__all__ = ["trace_of", "write_trace"]

_HOST, _DEVICE, _PREDICTION = 1, 2, 3
"""Numbers of the rows' groups, which the format calls processes."""


def write_trace(report: Report, path: Path) -> None:
    """Write the trace of a profile."""
    write_whole(path, json.dumps(trace_of(report), allow_nan=False).encode())


def trace_of(report: Report) -> dict[str, Any]:
    """The trace: what the host did, the operations of one update one after the other, and the memory after each."""
    device = report.devices[0]
    events = [*_host(device), *_operations(device), *_memory(device), *_predicted(device)]
    return {
        "displayTimeUnit": "ms",
        "otherData": {"title": report.title, "created": report.created, **report.versions},
        "traceEvents": events,
    }


def _host(device: Device) -> Iterator[dict[str, Any]]:
    if device.host is None:
        return
    yield _named("process_name", _HOST, 0, "host")
    tracks: dict[str, int] = {}
    for entry in device.host.entries:
        if entry.track not in tracks:
            tracks[entry.track] = len(tracks) + 1
            yield _named("thread_name", _HOST, tracks[entry.track], entry.track)
        yield _slice(_HOST, tracks[entry.track], entry.name, entry.start, entry.end - entry.start, {})


def _operations(device: Device) -> Iterator[dict[str, Any]]:
    """One update as its operations, laid end to end from the first measured update on."""
    yield _named("process_name", _DEVICE, 0, f"{device.title}: operations of one update, end to end")
    moment = _start(device)
    for each in device.operations:
        seconds = (each.measured_seconds if each.measured_seconds is not None else each.seconds) or 0.0
        details: dict[str, Any] = {"phase": each.phase, "module": each.module, "output": each.output}
        details |= {"flops": each.flops, "bytes": each.bytes, "runs in an update": each.times}
        if each.source is not None:
            details["source"] = f"{each.source.file}:{each.source.line} {each.source.text}"
        yield _slice(_DEVICE, 1, each.name, moment, seconds * each.times, details)
        moment += seconds * each.times


def _memory(device: Device) -> Iterator[dict[str, Any]]:
    moment = _start(device)
    for each in device.operations:
        seconds = (each.measured_seconds if each.measured_seconds is not None else each.seconds) or 0.0
        moment += seconds * each.times
        if each.measured_bytes is not None:
            yield {
                "ph": "C",
                "pid": _DEVICE,
                "name": "memory",
                "ts": moment * 1e6,
                "args": {"bytes": each.measured_bytes},
            }


def _predicted(device: Device) -> Iterator[dict[str, Any]]:
    if device.time is None:
        return
    yield _named("process_name", _PREDICTION, 0, "predicted update")
    moment = _start(device)
    for part, seconds in device.time.by_part.items():
        yield _slice(_PREDICTION, 1, part, moment, seconds, {})
        moment += seconds


def _start(device: Device) -> float:
    entries = () if device.host is None else device.host.entries
    return next((entry.start for entry in entries if entry.track == UPDATES), 0.0)


def _slice(group: int, row: int, name: str, start: float, seconds: float, details: dict[str, Any]) -> dict[str, Any]:
    event = {"ph": "X", "pid": group, "tid": row, "name": name, "ts": start * 1e6, "dur": seconds * 1e6}
    return event | ({"args": details} if details else {})


def _named(kind: str, group: int, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": group, "tid": row, "name": kind, "args": {"name": name}}
