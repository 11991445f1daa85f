"""A survey as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pilotage.monitoring.device import Device
from pilotage.monitoring.survey import AttachedProcess, AttachedProgram, Survey

__all__ = ["COLUMNS", "as_csv", "as_json", "as_vendors_json"]

COLUMNS = (
    "device",
    "type",
    "identity",
    "driver",
    "host",
    "emulated",
    "memory used (B)",
    "memory total (B)",
    "pid",
    "user",
    "time (s)",
    "activity",
    "tier",
    "instance",
    "instances",
    "clock (MHz)",
    "temperature (C)",
    "board temperature (C)",
    "power (W)",
    "steps",
    "steps/s",
    "updates",
    "calls",
    "replicas",
    "stage",
    "utilisation (%)",
    "name",
    "program",
    "command",
)
"""Scripts for gc-monitor split lines at commas, and expect temperatures and power in columns 17 to 19 and utilisation
in column 26: columns that may contain a comma come last."""


def as_json(survey: Survey, *, indent: int | None = 2) -> str:
    """The whole survey as JSON."""
    return json.dumps(_everything(survey), indent=indent, ensure_ascii=False)


def as_vendors_json(survey: Survey, *, indent: int | None = 2) -> str:
    """The survey as JSON with gc-monitor's list of cards; a card with a PID is in use."""
    cards = [
        {"id": number, "type": device.maker, "ipus": [_ipu(survey, device, number)]}
        for number, device in enumerate(survey.devices)
    ]
    return json.dumps({"cards": cards, **_everything(survey)}, indent=indent, ensure_ascii=False)


def as_csv(survey: Survey, *, by_device: bool, headers: bool) -> str:
    """One line per program, or per device with its most recent program."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if headers:
        writer.writerow(COLUMNS)
    writer.writerows(_device_rows(survey) if by_device else _program_rows(survey))
    return stream.getvalue().removesuffix("\n")


def _everything(survey: Survey) -> dict[str, Any]:
    return {
        "host": survey.host,
        "moment": survey.moment.isoformat(timespec="milliseconds"),
        "devices": [_device(survey, device) for device in survey.devices],
        "processes": [_process(process) for process in survey.processes],
        "notes": [*survey.card_notes, *survey.notes],
    }


def _device(survey: Survey, device: Device) -> dict[str, Any]:
    return {**asdict(device), "pids": [process.pid for process in _on(survey, device)]}


def _process(process: AttachedProcess) -> dict[str, Any]:
    known = {name: getattr(process, name) for name in ("pid", "user", "command", "seconds")}
    programs = [_program(program) for program in process.programs]
    return {**known, "devices": list(process.devices), "programs": programs}


def _program(program: AttachedProgram) -> dict[str, Any]:
    said = program.announcement
    return {
        "name": said.program,
        "trains": said.trains,
        "devices": list(program.devices),
        "tier": said.tier,
        "activity": program.activity.value,
        "calls": said.calls,
        "steps": said.steps,
        "updates": said.updates,
        "steps_per_second": program.steps_per_second,
        "replicas": said.replicas,
        "instance": said.instance,
        "instances": said.instances,
        "stage": said.stage,
        "job": said.job,
    }


def _ipu(survey: Survey, device: Device, number: int) -> dict[str, Any]:
    described = {"id": number, "name": device.name}
    users = _on(survey, device)
    return {**described, "PID": users[0].pid} if users else described


def _on(survey: Survey, device: Device) -> list[AttachedProcess]:
    return [process for process in survey.processes if device.id in process.devices]


def _device_rows(survey: Survey) -> Iterator[list[Any]]:
    for device in survey.devices:
        pairs = [(process, program) for process in _on(survey, device) for program in process.programs or (None,)]
        latest = max(
            pairs, key=lambda pair: -1.0 if pair[1] is None else pair[1].announcement.moment, default=(None, None)
        )
        yield _row(survey, device, *latest)


def _program_rows(survey: Survey) -> Iterator[list[Any]]:
    by_id = {device.id: device for device in survey.devices}
    for process in survey.processes:
        for program in process.programs or (None,):
            for device in process.devices if program is None else program.devices:
                yield _row(survey, by_id[device], process, program)


def _row(survey: Survey, device: Device, process: AttachedProcess | None, program: AttachedProgram | None) -> list[Any]:
    return [
        device.id,
        device.maker,
        device.identity,
        device.driver,
        survey.host,
        int(device.is_emulated),
        device.memory_used,
        device.memory_total,
        None if process is None else process.pid,
        None if process is None else process.user,
        None if process is None else round(process.seconds, 3),
        *_activity_values(program),
        device.clock,
        device.temperature,
        device.board_temperature,
        device.power,
        *_progress_values(program),
        None if device.utilisation is None else round(100 * device.utilisation, 1),
        device.name,
        None
        if program is None
        else program.announcement.program or ("training" if program.announcement.trains else "inference"),
        None if process is None else " ".join(process.command.split()),
    ]


def _activity_values(program: AttachedProgram | None) -> list[Any]:
    if program is None:
        return [None] * 4
    return [
        program.activity.value,
        program.announcement.tier,
        program.announcement.instance,
        program.announcement.instances,
    ]


def _progress_values(program: AttachedProgram | None) -> list[Any]:
    if program is None:
        return [None] * 6
    said, rate = program.announcement, program.steps_per_second
    return [said.steps, None if rate is None else round(rate, 3), said.updates, said.calls, said.replicas, said.stage]
