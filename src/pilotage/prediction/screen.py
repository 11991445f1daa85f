"""A prediction as lines of text: one screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from pilotage.prediction.document import Change, Device, Report

__all__ = ["NOT_PRICED", "bytes_text", "lines_of", "seconds_text", "show"]

NOT_PRICED = "Not predicted, for lack of time or because the module does not run that way: "
"""The beginning of the note about changes that were left out."""

Line = tuple[str, str]
"""A text and its style: good, bad, strong, faint or empty."""

_NAMES = {"temporaries": "temporary values", "optimizer": "optimizer state", "imbalance": "uneven tiles"}
"""Names of the categories of memory on the screen."""

_LAYERS = 4
_CHANGES = 12
_COLOURS = {"good": "32", "bad": "31", "strong": "1", "faint": "2"}


def show(lines: Sequence[Line]) -> None:
    """Print lines, with colours where the terminal has them."""
    encoding = sys.stdout.encoding or "ascii"
    for text, style in lines:
        plain = text.encode(encoding, errors="replace").decode(encoding)
        coloured = sys.stdout.isatty() and style in _COLOURS
        print(f"\033[{_COLOURS[style]}m{plain}\033[0m" if coloured else plain)


def lines_of(report: Report) -> list[Line]:
    """The whole report."""
    program = report.program
    head = (
        f"{program.name}: {program.mode}, {program.parameters:,} parameters in {program.precision}, "
        f"micro-batch {program.micro_batch}"
    )
    options = {
        "device iterations": program.device_iterations,
        "accumulation": program.accumulation,
        "replicas": program.replicas,
        "stages": program.stages,
    }
    head += "".join(f", {count} {name}" for name, count in options.items() if count > 1)
    found: list[Line] = [(head, "strong")]
    for device in report.devices:
        found += [("", ""), *_device(device)]
    return found


def _device(device: Device) -> Iterator[Line]:
    many = f"{device.count} x " if device.count > 1 else ""
    yield f"{many}{device.title}", "strong"
    yield from _verdict(device)
    yield from _memory(device)
    yield from _time(device)
    yield from _expensive(device)
    yield from _changes(device)


def _verdict(device: Device) -> Iterator[Line]:
    if device.peak_bytes is None or device.capacity_bytes is None or device.margin_bytes is None:
        return
    peak = device.peak_bytes
    span = f"{bytes_text(peak.value)} ({bytes_text(peak.low)} to {bytes_text(peak.high)})"
    of = f"needs {span} of {bytes_text(device.capacity_bytes)}"
    if device.fits:
        yield f"  fits: {of}, {bytes_text(device.margin_bytes)} are left", "good"
    else:
        yield f"  does not fit: {of}, {bytes_text(-device.margin_bytes)} too much", "bad"


def _memory(device: Device) -> Iterator[Line]:
    if device.memory is None:
        return
    parts = sorted(device.memory.by_category.items(), key=lambda pair: -pair[1])
    yield "  memory    " + ", ".join(f"{_NAMES.get(name, name)} {bytes_text(size)}" for name, size in parts if size), ""
    layers = [f"{each.module} {bytes_text(each.bytes)}" for each in device.memory.by_layer[:_LAYERS]]
    if layers:
        yield "  layers    " + ", ".join(layers), ""
    stages = device.memory.by_stage
    if len(stages) > 1:
        yield "  stages    " + ", ".join(f"{each.stage}: {bytes_text(each.peak_bytes)}" for each in stages), ""
    if device.memory.tiles is not None:
        tiles = device.memory.tiles
        yield (
            f"  tiles     {tiles.count} of {bytes_text(tiles.capacity_bytes)}: mean {bytes_text(tiles.mean_bytes)}, "
            f"fullest {bytes_text(tiles.max_bytes)}, which decides",
            "",
        )


def _time(device: Device) -> Iterator[Line]:
    if device.time is None:
        return
    taken, rate = device.time.update_seconds, device.time.throughput
    yield (
        f"  time      {seconds_text(taken.value)} an update ({seconds_text(taken.low)} to {seconds_text(taken.high)}), "
        f"{rate.value:,.0f} {device.time.unit} ({rate.low:,.0f} to {rate.high:,.0f})",
        "",
    )
    parts = sorted(device.time.by_part.items(), key=lambda pair: -pair[1])
    yield "            " + ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in parts), ""


def _expensive(device: Device) -> Iterator[Line]:
    for place, each in enumerate(device.expensive):
        label = "  expensive " if place == 0 else "            "
        text = f" `{each.source.text[:60]}`" if each.source is not None and each.source.text else ""
        yield f"{label}{each.what}: {each.why}{text}", ""


def _changes(device: Device) -> Iterator[Line]:
    if not device.changes or device.time is None:
        return
    yield "  suggested changes, with their predictions", ""
    before = device.time.throughput.value or 1.0
    for change in sorted(device.changes, key=lambda each: _order(each, before))[:_CHANGES]:
        fits = "" if change.fits else "  does not fit"
        yield (
            f"    {change.option:<28} {bytes_text(change.peak_bytes or 0):>9}  "
            f"{(change.throughput or 0.0) / before - 1:>+6.0%} throughput{fits}  {change.how}",
            "" if change.fits else "faint",
        )
    for note in device.assumptions:
        if note.startswith(NOT_PRICED):
            yield f"    {note}", "faint"


def _order(change: Change, before: float) -> tuple[bool, float]:
    return (not change.fits, -(change.throughput or 0.0) / before)


def bytes_text(count: float) -> str:
    """A readable number of bytes, in the units of torch and of the page: 1.2 GiB."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(count) >= size:
            return f"{_three_digits(count / size)} {unit}"
    return f"{count:.0f} B"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def seconds_text(seconds: float) -> str:
    """A readable time: 12.3 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
