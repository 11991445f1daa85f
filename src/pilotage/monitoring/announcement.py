"""What a process announces about one of its programs, as a value and as the text of a file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

_IDLE_AFTER = 3.0
"""Seconds, or mean times between calls if these are longer, after which a silent program counts as idle."""


class Activity(StrEnum):
    """What a program is doing."""

    COMPILING = "compiling"
    STARTING = "starting"
    """Running its first call."""
    RUNNING = "running"
    IDLE = "idle"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramDescription:
    """The part of an announcement that does not change while the program runs."""

    program: str | None = None
    """The name that the user gave the program."""

    trains: bool = True
    replicas: int = 1
    instance: int = 0
    instances: int = 1
    stage: int | None = None
    job: str | None = None
    """An identifier that instances which train together share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Announcement(ProgramDescription):
    """One program of a process at one moment; times are those of the monotonic clock.

    Large because each field is a value that the monitor shows.
    """

    devices: tuple[str, ...]
    """Their names as in log lines."""

    hardware: tuple[str, ...]
    """The UUID of each device; empty if it has none."""

    tier: str
    activity: Activity
    since: float
    """When the program was first placed on a device."""

    moment: float
    """When this was announced."""

    calls: int
    steps: int
    """Micro-batches."""

    updates: int
    rate: float | None
    """Recent steps per second; None before the first step."""

    period: float
    """Mean seconds between calls."""

    def activity_at(self, moment: float) -> Activity:
        """What the program is doing now; a program that has been silent for long is idle."""
        silence = moment - self.moment
        if self.activity is Activity.RUNNING and silence > _IDLE_AFTER * max(1.0, self.period):
            return Activity.IDLE
        return self.activity

    def as_text(self) -> str:
        """Encode it."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)})

    @staticmethod
    def from_text(text: str | bytes) -> Announcement:
        """Decode what `as_text` returned; anything else raises a ValueError."""
        try:
            read = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(read, dict) or read.keys() != {field.name for field in fields(Announcement)}:
            raise ValueError("not the fields of an announcement")
        return Announcement(
            program=_text_or_none(read["program"]),
            trains=bool(read["trains"]),
            devices=_texts(read["devices"]),
            hardware=_texts(read["hardware"]),
            tier=_text(read["tier"]),
            activity=Activity(_text(read["activity"])),
            since=_number(read["since"]),
            moment=_number(read["moment"]),
            calls=_count(read["calls"]),
            steps=_count(read["steps"]),
            updates=_count(read["updates"]),
            rate=None if read["rate"] is None else _number(read["rate"]),
            period=_number(read["period"]),
            replicas=_count(read["replicas"]),
            instance=_count(read["instance"]),
            instances=_count(read["instances"]),
            stage=None if read["stage"] is None else _count(read["stage"]),
            job=_text_or_none(read["job"]),
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return tuple(map(_text, value))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("the number is too large") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r} is not a time or a rate")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a count")
    return value
