"""A profile on one screen."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from pilotage.prediction.document import Device, Measured, Operation, Report

__all__ = ["Line", "lines_of"]

Line = tuple[str, str]
"""A line and its style: strong, faint, or nothing."""

_SHOWN = 8
"""Kinds of operations and modules that are listed."""


def lines_of(report: Report, width: int = 100) -> list[Line]:
    """The lines of the screen."""
    device = report.devices[0]
    return [(text[:width], style) for text, style in _all(report, device, width)]


def _all(report: Report, device: Device, width: int) -> Iterator[Line]:
    program, measured = report.program, device.measured
    yield f"{report.title}: {program.mode} on {device.title}", "strong"
    if measured is not None:
        seconds = measured.update_seconds
        step = "update" if program.mode == "training" else "call"
        beside = f", predicted {time_text(device.time.update_seconds.value)}" if device.time is not None else ""
        yield (
            f"  {step:<12}{time_text(seconds.value)} (median of {measured.updates}, {time_text(seconds.low)} to "
            f"{time_text(seconds.high)}){beside}",
            "",
        )
        yield from _loop(measured, "an update" if step == "update" else "a call")
        beside = f", predicted {device.time.throughput.value:.4g}" if device.time is not None else ""
        yield f"  {'throughput':<12}{measured.throughput:.4g} {measured.unit}{_alone(measured)}{beside}", ""
        if measured.peak_bytes is not None:
            beside = f", predicted {size_text(device.peak_bytes.value)}" if device.peak_bytes is not None else ""
            of = f" of {size_text(device.capacity_bytes)}" if device.capacity_bytes is not None else ""
            yield f"  {'peak memory':<12}{size_text(measured.peak_bytes)}{of}{beside}", ""
    if device.memory is not None:
        for line in textwrap.wrap(_categories(device), max(30, width - 14)):
            yield f"  {'':<12}{line}", "faint"
    yield from _table("operation", device.operations, lambda each: each.name, width)
    yield from _table("module", device.operations, lambda each: each.module or "(outside of modules)", width)
    if device.insights:
        yield "", ""
        for text in device.insights:
            yield from _wrapped(text, width)


def _loop(measured: Measured, step: str) -> Iterator[Line]:
    """The time that the script spends between its updates, while the device waits."""
    if measured.loop_seconds is None:
        return
    between = max(0.0, measured.loop_seconds - measured.update_seconds.value)
    share = between / measured.loop_seconds if measured.loop_seconds else 0.0
    yield (
        f"  {'loop':<12}{time_text(measured.loop_seconds)} {step}, {time_text(between)} ({share:.0%}) of it the "
        "script's own work: loading, logging",
        "",
    )


def _alone(measured: Measured) -> str:
    """The throughput without the time between updates."""
    if not measured.loop_seconds or not measured.update_seconds.value:
        return ""
    alone = measured.throughput * measured.loop_seconds / measured.update_seconds.value
    return f" of the loop, {alone:.4g} counting only updates"


def _categories(device: Device) -> str:
    assert device.memory is not None
    parts = sorted(device.memory.by_category.items(), key=lambda each: -each[1])
    return ", ".join(f"{name} {size_text(size)}" for name, size in parts[:6])


def _table(title: str, operations: Sequence[Operation], key: Callable[[Operation], str], width: int) -> Iterator[Line]:
    seconds: dict[str, float] = defaultdict(float)
    runs: dict[str, int] = defaultdict(int)
    for each in operations:
        seconds[key(each)] += (each.measured_seconds or 0.0) * each.times
        runs[key(each)] += each.times
    total = sum(seconds.values())
    if not total:
        return
    room = max(20, min(48, width - 40))
    yield "", ""
    yield f"  {title:<{room}}{'time':>10}{'share':>8}{'runs':>8}", "faint"
    for name in sorted(seconds, key=lambda name: -seconds[name])[:_SHOWN]:
        shown = name if len(name) < room else f"…{name[-(room - 2) :]}"
        yield f"  {shown:<{room}}{time_text(seconds[name]):>10}{seconds[name] / total:>8.0%}{runs[name]:>8}", ""


def _wrapped(text: str, width: int) -> Iterator[Line]:
    for number, line in enumerate(textwrap.wrap(text, max(30, width - 4))):
        yield f"{'  • ' if number == 0 else '    '}{line}", ""


def time_text(seconds: float) -> str:
    """``1.52 ms``."""
    for limit, unit, factor in ((1e-3, "µs", 1e6), (1.0, "ms", 1e3)):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def size_text(size: float) -> str:
    """``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
