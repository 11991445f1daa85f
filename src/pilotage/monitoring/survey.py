"""A survey of the machine: its devices, and the processes that use them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pilotage.monitoring.announced_programs import read_announcements
from pilotage.monitoring.announcement import Activity, Announcement
from pilotage.monitoring.cards import GAUDI, NVIDIA, find_cards
from pilotage.monitoring.device import Device
from pilotage.monitoring.pci import count_cards
from pilotage.monitoring.processes import command_of, seconds_of, user_of
from pilotage.monitoring.processor import Processor
from pilotage.options import environment


@dataclass(frozen=True, slots=True)
class AttachedProgram:
    """A program of a process, and the devices that it runs on."""

    announcement: Announcement
    devices: tuple[str, ...]
    activity: Activity

    @property
    def steps_per_second(self) -> float | None:
        """Its current speed; None if unknown."""
        return {Activity.RUNNING: self.announcement.rate, Activity.IDLE: 0.0}.get(self.activity)


@dataclass(frozen=True, slots=True)
class AttachedProcess:
    """A process that uses devices; one that only a driver knows has no programs."""

    pid: int
    user: str
    command: str
    seconds: float
    """How long it has used a device, or has been running if that is unknown."""

    devices: tuple[str, ...]
    programs: tuple[AttachedProgram, ...] = ()
    """Oldest first."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Devices and processes of this machine."""

    host: str
    moment: datetime
    devices: tuple[Device, ...]
    processes: tuple[AttachedProcess, ...]
    notes: tuple[str, ...] = ()
    """Notes about the search for processes."""

    card_notes: tuple[str, ...] = ()
    """Notes about the search for cards."""


class Surveyor:
    """Takes one survey after another."""

    def __init__(self) -> None:
        self._processor = Processor()

    def survey(self) -> Survey:
        """Survey the machine now."""
        cards = count_cards()
        found = [find_cards("NVIDIA", NVIDIA, cards.nvidia), find_cards("Gaudi", GAUDI, cards.gaudi)]
        devices = [self._processor.read(), *(device for each in found for device in each.devices)]
        announced = read_announcements(environment.run_directories())
        survey = assemble(devices, announced.programs, announced.notes, time.monotonic())
        return replace(survey, card_notes=tuple(each.note for each in found if each.note))


def assemble(
    devices: Sequence[Device], programs: dict[int, list[Announcement]], notes: Iterable[str], now: float
) -> Survey:
    """Match programs with devices, and add devices that only a program knows."""
    by_id = {device.id: device for device in devices}
    announced = []
    for pid, announcements in programs.items():
        placed = [
            AttachedProgram(
                each, tuple(_device_of(by_id, *pair) for pair in _devices_with_cards(each)), each.activity_at(now)
            )
            for each in sorted(announcements, key=lambda each: each.since)
        ]
        announced.append((pid, tuple(placed)))
    processes = [_announced(pid, placed, now) for pid, placed in announced]
    others = [_known_to_driver(pid, devices) for pid in _unannounced(devices, programs)]
    return Survey(
        host=socket.gethostname(),
        moment=datetime.now(UTC).astimezone(),
        devices=tuple(by_id.values()),
        processes=_in_order([process for process in (*processes, *others) if process is not None]),
        notes=tuple(notes),
    )


def _devices_with_cards(announcement: Announcement) -> list[tuple[str, str]]:
    devices, cards = announcement.devices, announcement.hardware
    return list(zip(devices, cards if len(cards) == len(devices) else ("",) * len(devices), strict=True))


def _device_of(by_id: dict[str, Device], label: str, card: str) -> str:
    """The device that a program uses; a process may number its cards differently from the machine."""
    name, _, emulated = label.partition(" (")
    for device in by_id.values():
        if card and device.identity.endswith(card):
            return device.id
    for known in (name, f"{name}:0"):
        if not card and not emulated and known in by_id:
            return known
    if name not in by_id:
        described = emulated.removesuffix(")") or "known only to its process"
        by_id[name] = Device(id=name, maker="emulated" if emulated else "?", name=described, is_emulated=bool(emulated))
    return name


def _announced(pid: int, programs: tuple[AttachedProgram, ...], now: float) -> AttachedProcess | None:
    user = user_of(pid)
    if user is None:
        return None
    devices = tuple(dict.fromkeys(device for program in programs for device in program.devices))
    seconds = max(0.0, now - min(program.announcement.since for program in programs))
    return AttachedProcess(pid, user, command_of(pid), seconds, devices, programs)


def _unannounced(devices: Iterable[Device], programs: dict[int, list[Announcement]]) -> list[int]:
    return sorted({pid for device in devices for pid in device.pids} - programs.keys())


def _known_to_driver(pid: int, devices: Iterable[Device]) -> AttachedProcess | None:
    user, seconds = user_of(pid), seconds_of(pid)
    if user is None or seconds is None:
        return None
    return AttachedProcess(pid, user, command_of(pid), seconds, tuple(d.id for d in devices if pid in d.pids))


def _in_order(processes: list[AttachedProcess]) -> tuple[AttachedProcess, ...]:
    """Oldest first, with the instances of a job next to each other."""
    oldest: dict[str, float] = {}
    for process in processes:
        job = _job(process)
        oldest[job] = max(process.seconds, oldest.get(job, 0.0))

    def position(process: AttachedProcess) -> tuple[float, str, int, int, int]:
        job = _job(process)
        first = process.programs[0].announcement if process.programs else None
        instance, stage = (first.instance, first.stage or 0) if first else (0, 0)
        return -oldest[job], job, instance, stage, process.pid

    return tuple(sorted(processes, key=position))


def _job(process: AttachedProcess) -> str:
    first = process.programs[0].announcement if process.programs else None
    return (first.job if first else None) or f"process {process.pid}"
