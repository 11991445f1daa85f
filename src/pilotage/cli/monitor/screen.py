"""The screen of the monitor: a table of devices, a table of processes, and notes."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from pilotage.cli.formatting import format_duration, format_memory, format_rate, format_reading
from pilotage.cli.monitor.lines import Drawing, Line, draw, draw_box
from pilotage.cli.monitor.table import Cell, Column, Table
from pilotage.monitoring.announcement import Activity
from pilotage.monitoring.device import Device
from pilotage.monitoring.plurals import pluralized
from pilotage.monitoring.survey import AttachedProcess, AttachedProgram, Survey

__all__ = ["GC_MONITOR", "MONITOR", "Wording", "pace", "screen"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts in which `pilotage monitor` and gc-monitor differ."""

    command: str
    machine: str
    """The heading, with the name of the host."""

    place: str


_NOTHING = ("", "N/A")
"""A column is left out if all its cells are one of these."""

MONITOR = Wording("pilotage monitor", "{host} has {devices}", "on {host}")
GC_MONITOR = Wording("gc-monitor", "Partition: {host} [active] has {devices}", "in partition {host}")


def screen(
    survey: Survey, wording: Wording, drawing: Drawing, width: int, *, devices: bool = True, processes: bool = True
) -> list[Line]:
    """The whole screen, line by line, no wider than ``width`` if possible."""
    lines: list[Line] = []
    if devices:
        lines += draw(_device_table(survey, wording).fitted(width), drawing)
    if processes and survey.processes:
        lines += draw(_process_table(survey, wording).fitted(width), drawing)
    elif processes:
        lines += draw_box(f"No attached processes {wording.place.format(host=survey.host)}", width, drawing)
    notes = [*(survey.card_notes if devices else ()), *(survey.notes if processes else ())]
    texts = [*(_jobs(survey) if processes else ()), " ".join(notes)]
    return lines + [[Cell(line, "note")] for text in texts for line in textwrap.wrap(text, max(20, width))]


def _device_table(survey: Survey, wording: Wording) -> Table:
    group = wording.machine.format(host=survey.host, devices=pluralized(len(survey.devices), "device"))

    def column(title: str, cells: list[str], rank: int, over: str = group) -> Column:
        return Column(title, over, tuple(map(Cell, cells)), rank)

    each = survey.devices
    names = tuple(Cell(device.name, "emulated" if device.is_emulated else "") for device in each)
    return _without_empty_columns(
        (
            Column("ID", wording.command, tuple(Cell(device.id, "id") for device in each), 100),
            column("Type", [device.maker for device in each], 60, wording.command),
            Column("Device", group, names, 90, least=12, align="<"),
            column("Driver", [device.driver or "N/A" for device in each], 10),
            column("Memory", [format_memory(device.memory_used, device.memory_total) for device in each], 50),
            column("Load", [_share(device) for device in each], 80),
            column("Clock", [format_reading(device.clock, "MHz") for device in each], 20),
            column("Temp", [format_reading(device.temperature, "C") for device in each], 40),
            column("Power", [format_reading(device.power, "W") for device in each], 30),
        )
    )


def _share(device: Device) -> str:
    return "N/A" if device.utilisation is None else f"{device.utilisation:.0%}"


@dataclass(frozen=True, slots=True)
class _Row:
    """One program of a process; the first row of a process also shows the process itself."""

    process: AttachedProcess
    program: AttachedProgram | None
    is_first: bool
    idle: int = 0
    """Idle programs of the process that have no row."""


def _process_table(survey: Survey, wording: Wording) -> Table:
    rows = [row for process in survey.processes for row in _rows(process)]
    by_id = {device.id: device for device in survey.devices}
    attached = f"Attached processes {wording.place.format(host=survey.host)}"
    columns = [
        Column("PID", attached, tuple(Cell(_first(row, str(row.process.pid)), "id") for row in rows)),
        Column("Command", attached, tuple(Cell(_first(r, _command(r))) for r in rows), 80, least=18, align="<"),
        Column("Time", attached, tuple(Cell(_first(row, format_duration(row.process.seconds))) for row in rows), 60),
        Column("User", attached, tuple(Cell(_first(row, row.process.user)) for row in rows), 30),
        Column("ID", "Device", tuple(Cell(", ".join(_devices(row))) for row in rows), 70, least=6),
        Column("Clock", "Device", tuple(Cell(_sensor(by_id, row, "clock", "MHz")) for row in rows), 1),
        Column("Temp", "Device", tuple(Cell(_sensor(by_id, row, "temperature", "C")) for row in rows), 3),
        Column("Power", "Device", tuple(Cell(_sensor(by_id, row, "power", "W")) for row in rows), 2),
        Column("Name", "Program", tuple(Cell(_name(row)) for row in rows), 40, least=9),
        Column("Instance", "Program", tuple(Cell(_instance(row)) for row in rows), 50),
        Column("Replicas", "Program", tuple(Cell(_replicas(row)) for row in rows), 20),
        Column("Steps", "Program", tuple(Cell(_steps(row)) for row in rows), 10, align=">"),
        Column("Steps/s", "Program", tuple(_pace(row) for row in rows), 95, align=">"),
        Column("Tier", "Program", tuple(_tier(row) for row in rows), 90),
    ]
    return _without_empty_columns(columns)


def _without_empty_columns(columns: Iterable[Column]) -> Table:
    """A table of the columns that are not empty."""
    shown = [column for column in columns if any(cell.text not in _NOTHING for cell in column.cells)]
    return Table(tuple(shown))


def _rows(process: AttachedProcess) -> Iterator[_Row]:
    """The active programs, or else the most recent one."""
    active = [program for program in process.programs if program.activity is not Activity.IDLE]
    shown = active or sorted(process.programs, key=lambda program: program.announcement.moment)[-1:]
    if not shown:
        yield _Row(process, None, is_first=True)
    for number, program in enumerate(shown):
        yield _Row(process, program, is_first=number == 0, idle=0 if number else len(process.programs) - len(shown))


def _command(row: _Row) -> str:
    """The command line without the folder of the script, which would take too much room."""
    program, *arguments = row.process.command.split() or [""]
    script, others = (PurePath(arguments[0]).name or arguments[0], arguments[1:]) if arguments else ("", [])
    return " ".join([program, script, *others]).rstrip()


def _first(row: _Row, text: str) -> str:
    return text if row.is_first else ""


def _devices(row: _Row) -> tuple[str, ...]:
    return row.process.devices if row.program is None else row.program.devices


def _sensor(by_id: dict[str, Device], row: _Row, sensor: str, unit: str) -> str:
    return ", ".join(format_reading(getattr(by_id[device], sensor), unit) for device in _devices(row))


def _name(row: _Row) -> str:
    if row.program is None:
        return "not ours"
    name = row.program.announcement.program or ("training" if row.program.announcement.trains else "inference")
    return f"{name} (+{row.idle} idle)" if row.idle else name


def _instance(row: _Row) -> str:
    if row.program is None:
        return ""
    said = row.program.announcement
    instance = f"{said.instance} of {said.instances}" if said.instances > 1 else ""
    stage = "" if said.stage is None else f"stage {said.stage}"
    return ", ".join(part for part in (instance, stage) if part)


def _replicas(row: _Row) -> str:
    return (
        "" if row.program is None or row.program.announcement.replicas == 1 else str(row.program.announcement.replicas)
    )


def _steps(row: _Row) -> str:
    return "" if row.program is None else f"{row.program.announcement.steps:,}"


def _pace(row: _Row) -> Cell:
    return Cell("") if row.program is None else Cell(pace(row.program), row.program.activity.value)


def pace(program: AttachedProgram) -> str:
    """Steps per second, or the activity of a program that makes none."""
    rate = program.announcement.rate
    if program.activity is Activity.RUNNING and rate is not None:
        return format_rate(rate)
    return "first call" if program.activity is Activity.STARTING else program.activity.value


def _tier(row: _Row) -> Cell:
    return Cell("") if row.program is None else Cell(row.program.announcement.tier, row.program.announcement.tier)


def _jobs(survey: Survey) -> Iterator[str]:
    """One sentence per job of several processes."""
    jobs: dict[str, list[AttachedProgram]] = defaultdict(list)
    for process in survey.processes:
        for program in process.programs[:1]:
            if program.announcement.job is not None and (
                program.announcement.instances > 1 or program.announcement.stage is not None
            ):
                jobs[program.announcement.job].append(program)
    for job, programs in jobs.items():
        said = programs[0].announcement
        here = len({program.announcement.instance for program in programs})
        instances = f"{here} of {pluralized(said.instances, 'instance')} here"
        replicas = f", {said.replicas} replicas each" if said.replicas > 1 else ""
        # The stages of an instance all run the same steps.
        together = sum(program.steps_per_second or 0.0 for program in programs if not program.announcement.stage)
        yield f"{job}: {instances}{replicas}, {format_rate(together)} steps/s together."
