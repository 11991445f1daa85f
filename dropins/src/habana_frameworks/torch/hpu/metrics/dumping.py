"""Metrics as files, on request or at certain events."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any

from habana_frameworks._emulation.events import EventDispatcher, EventId, Parameters
from habana_frameworks.torch.hpu.metrics.counting import Metric, global_metrics

_FILE = "PT_HPU_METRICS_FILE"
_FORMAT = "PT_HPU_METRICS_FILE_FORMAT"
_WHEN = "PT_HPU_METRICS_DUMP_TRIGGERS"
_TRIGGERS = ("process_exit", "mark_step", "metric_change", "user")
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK")


class MetricDumpFormat(Enum):
    """How to write metrics."""

    json = "json"
    text = "text"


class InvalidMetricDumpFileFormat(Exception):
    """The format in the environment is not known."""


class InvalidMetricDumpTrigger(Exception):
    """A trigger in the environment is not known."""


def metrics_dump(file_name: str, format: MetricDumpFormat = MetricDumpFormat.json) -> None:
    """Append the figures of all metrics to a file."""
    _append(Path(file_name), format, [_record(each, "user") for each in global_metrics().values()])


@cache
def dump_when_asked() -> None:
    """Write the file that PT_HPU_METRICS_FILE names, at the events in PT_HPU_METRICS_DUMP_TRIGGERS."""
    if not (name := _setting(_FILE)):
        return
    text = _setting(_FORMAT) or "json"
    if text not in MetricDumpFormat.__members__:
        raise InvalidMetricDumpFileFormat(f"PT_HPU_METRICS_FILE_FORMAT is {text!r}. Choose one of: json, text.")
    triggers = [each.strip() for each in (_setting(_WHEN) or _TRIGGERS[0]).split(",")]
    if unknown := [each for each in triggers if each not in _TRIGGERS]:
        raise InvalidMetricDumpTrigger(
            f"PT_HPU_METRICS_DUMP_TRIGGERS has {unknown[0]!r}. Choose among: {', '.join(_TRIGGERS)}."
        )
    _subscribe(_unused(Path(name)), MetricDumpFormat[text], triggers)


def _subscribe(path: Path, format: MetricDumpFormat, triggers: list[str]) -> None:
    def write(trigger: str, *metrics: Metric) -> None:
        _append(path, format, [_record(each, trigger) for each in metrics or global_metrics().values()])

    for name, event in (("process_exit", EventId.PROCESS_EXIT), ("mark_step", EventId.MARK_STEP)):
        if name in triggers:
            EventDispatcher.instance().subscribe(event, partial(_ignoring_details, partial(write, name)))
    if "metric_change" in triggers:
        for each in global_metrics().values():
            each.on_metric_change(lambda metric: write("metric_change", metric))


def _ignoring_details(write: Callable[[], None], moment: int, params: Parameters) -> None:
    write()


def _setting(name: str) -> str | None:
    """The value of a variable, which has an older name too."""
    older = f"HABANA_{name.replace('HPU_', '', 1)}"
    return os.environ.get(name) or os.environ.get(older) or None


def _unused(path: Path) -> Path:
    """The file of this process: with its rank, and with a number if there is such a file already."""
    rank = next((os.environ[name] for name in _RANKS if name in os.environ), None)
    stem = path.stem if rank is None else f"{path.stem}-rank{rank}"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(1)))
    return next(place for name in names if not (place := path.with_name(name + path.suffix)).exists())


def _record(metric: Metric, trigger: str) -> dict[str, Any]:
    return {
        "metric_name": metric.name(),
        "triggered_by": trigger,
        "generated_on": datetime.now().isoformat(),
        "statistics": dict(metric.stats()),
    }


def _append(path: Path, format: MetricDumpFormat, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format is MetricDumpFormat.text:
        with path.open("a") as file:
            file.writelines(_text(each) for each in records)
        return
    entries = ",\n".join(json.dumps(each, indent=2) for each in records)
    is_new = not path.exists() or path.stat().st_size == 0
    with path.open("w+b" if is_new else "r+b") as binary:
        # The file is an array at any time: the new entries replace its last bracket.
        if not is_new:
            binary.seek(-len("\n]\n"), os.SEEK_END)
        binary.write(f"{'[' if is_new else ','}\n{entries}\n]\n".encode())


def _text(record: dict[str, Any]) -> str:
    lines = [f"{name}: {record[name]}" for name in ("metric_name", "triggered_by", "generated_on")]
    lines += [f"    {name}: {value}" for name, value in record["statistics"].items()]
    return "\n".join(lines) + "\n"
