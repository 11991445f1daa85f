"""The whole picture at one moment: devices, and the processes that are attached to them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pilotage.monitoring.announcement import Activity, Announcement
from pilotage.monitoring.attendance import take_attendance
from pilotage.monitoring.bus import count_cards
from pilotage.monitoring.cards import GAUDI, NVIDIA, find_cards
from pilotage.monitoring.device import Device
from pilotage.monitoring.process_facts import command_of, seconds_of, user_of
from pilotage.monitoring.processor import Processor
from pilotage.options import environment


@dataclass(frozen=True, slots=True)
class AttachedProgram:
    """A program of a process, and the devices of the survey that it is on."""

    said: Announcement
    devices: tuple[str, ...]
    activity: Activity

    @property
    def steps_per_second(self) -> float | None:
        """How fast it goes now; None where nothing is known."""
        return {Activity.RUNNING: self.said.rate, Activity.IDLE: 0.0}.get(self.activity)


@dataclass(frozen=True, slots=True)
class AttachedProcess:
    """A process that uses devices; one that a driver alone knows of has no programs."""

    pid: int
    user: str
    command: str
    seconds: float
    """For how long it has been attached, or there at all."""

    devices: tuple[str, ...]
    programs: tuple[AttachedProgram, ...] = ()
    """In the order in which they came."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Devices and processes of this machine."""

    host: str
    moment: datetime
    devices: tuple[Device, ...]
    processes: tuple[AttachedProcess, ...]
    notes: tuple[str, ...] = ()
    """What there is to say about looking for processes."""

    card_notes: tuple[str, ...] = ()
    """The same about looking for cards."""


class Surveyor:
    """Takes surveys, one after the other."""

    def __init__(self) -> None:
        self._processor = Processor()

    def survey(self) -> Survey:
        """Look at everything now."""
        cards = count_cards()
        found = [find_cards("NVIDIA", NVIDIA, cards.nvidia), find_cards("Gaudi", GAUDI, cards.gaudi)]
        devices = [self._processor.look(), *(device for each in found for device in each.devices)]
        attendance = take_attendance(environment.run_directories())
        survey = assemble(devices, attendance.programs, attendance.notes, time.monotonic())
        return replace(survey, card_notes=tuple(each.note for each in found if each.note))


def assemble(
    devices: Sequence[Device], programs: dict[int, list[Announcement]], notes: Iterable[str], now: float
) -> Survey:
    """Bring devices and programs together; a device that only a program knows of is added."""
    by_id = {device.id: device for device in devices}
    announced = []
    for pid, said in programs.items():
        placed = [
            AttachedProgram(each, tuple(_device_of(by_id, *pair) for pair in _places(each)), each.activity_at(now))
            for each in sorted(said, key=lambda each: each.since)
        ]
        announced.append((pid, tuple(placed)))
    processes = [_announced(pid, placed, now) for pid, placed in announced]
    others = [_known_to_driver(pid, devices) for pid in _strangers(devices, programs)]
    return Survey(
        host=socket.gethostname(),
        moment=datetime.now(UTC).astimezone(),
        devices=tuple(by_id.values()),
        processes=_in_order([process for process in (*processes, *others) if process is not None]),
        notes=tuple(notes),
    )


def _places(said: Announcement) -> list[tuple[str, str]]:
    cards = said.hardware if len(said.hardware) == len(said.devices) else ("",) * len(said.devices)
    return list(zip(said.devices, cards, strict=True))


def _device_of(by_id: dict[str, Device], label: str, card: str) -> str:
    """The device that a program means; a process may see a card by another number than the machine has for it."""
    name, _, emulated = label.partition(" (")
    for device in by_id.values():
        if card and device.identity.endswith(card):
            return device.id
    for known in (name, f"{name}:0"):
        if not card and not emulated and known in by_id:
            return known
    if name not in by_id:
        described = emulated.removesuffix(")") or "known by its process alone"
        by_id[name] = Device(id=name, maker="emulated" if emulated else "?", name=described, is_emulated=bool(emulated))
    return name


def _announced(pid: int, programs: tuple[AttachedProgram, ...], now: float) -> AttachedProcess | None:
    user = user_of(pid)
    if user is None:
        return None
    devices = tuple(dict.fromkeys(device for program in programs for device in program.devices))
    seconds = max(0.0, now - min(program.said.since for program in programs))
    return AttachedProcess(pid, user, command_of(pid), seconds, devices, programs)


def _strangers(devices: Iterable[Device], programs: dict[int, list[Announcement]]) -> list[int]:
    return sorted({pid for device in devices for pid in device.pids} - programs.keys())


def _known_to_driver(pid: int, devices: Iterable[Device]) -> AttachedProcess | None:
    user, seconds = user_of(pid), seconds_of(pid)
    if user is None or seconds is None:
        return None
    return AttachedProcess(pid, user, command_of(pid), seconds, tuple(d.id for d in devices if pid in d.pids))


def _in_order(processes: list[AttachedProcess]) -> tuple[AttachedProcess, ...]:
    """The oldest first, the instances of one job together."""
    oldest: dict[str, float] = {}
    for process in processes:
        job = _job(process)
        oldest[job] = max(process.seconds, oldest.get(job, 0.0))

    def place(process: AttachedProcess) -> tuple[float, str, int, int, int]:
        job = _job(process)
        said = process.programs[0].said if process.programs else None
        instance, stage = (said.instance, said.stage or 0) if said else (0, 0)
        return -oldest[job], job, instance, stage, process.pid

    return tuple(sorted(processes, key=place))


def _job(process: AttachedProcess) -> str:
    said = process.programs[0].said if process.programs else None
    return (said.job if said else None) or f"process {process.pid}"
