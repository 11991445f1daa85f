"""The compact form of a report inside the page: operations as columns, and each repeated text once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from pilotage.prediction.document import Device, Operation, Report, Source
from pilotage.prediction.document.files import plain

__all__ = ["compact"]

_PHASES = ("forward", "backward", "update")
_DIGITS = 5
"""Significant digits of times; more are never shown."""


def compact(report: Report) -> dict[str, Any]:
    """The data of one report for the page."""
    data = {name: plain(getattr(report, name)) for name in ("kind", "created", "title", "command", "versions")}
    data["machine"], data["program"] = plain(report.machine), plain(report.program)
    data["devices"] = [_device(device) for device in report.devices]
    return data


def _device(device: Device) -> dict[str, Any]:
    names = [name for name in Device.__slots__ if name != "operations"]
    return {name: plain(getattr(device, name)) for name in names} | {"operations": _columns(device.operations)}


def _columns(operations: Sequence[Operation]) -> dict[str, Any]:
    texts, sources = _Numbers(), _Numbers()
    columns: dict[str, Any] = {
        "count": len(operations),
        "name": [texts.of(each.name) for each in operations],
        "phase": [_PHASES.index(each.phase) for each in operations],
        "module": [texts.of(each.module) for each in operations],
        "output": [texts.of(each.output) for each in operations],
        "source": [None if each.source is None else sources.of(each.source) for each in operations],
        "seconds": _rounded(each.seconds for each in operations),
        "measured_seconds": _rounded(each.measured_seconds for each in operations),
    }
    for name in ("stage", "times", "flops", "bytes", "measured_bytes"):
        columns[name] = [getattr(each, name) for each in operations]
    known: list[Source] = sources.values
    return columns | {"texts": texts.values, "sources": [plain(each) for each in known]}


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.{_DIGITS}g}") for value in values]


class _Numbers:
    """Gives each value a number when it first occurs."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Any]:
        return list(self._numbers)
