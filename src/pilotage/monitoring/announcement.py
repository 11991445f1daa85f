"""What a process says about one of its programs, as a value and as the text of a file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

_PATIENCE = 3.0
"""Seconds, and mean times between calls, after which a program that says nothing counts as idle."""


class Activity(StrEnum):
    """What a program is doing."""

    COMPILING = "compiling"
    STARTING = "starting"
    """In its first call."""
    RUNNING = "running"
    IDLE = "idle"


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What does not change while a program runs."""

    program: str | None = None
    """What the user calls it."""

    trains: bool = True
    replicas: int = 1
    instance: int = 0
    instances: int = 1
    stage: int | None = None
    job: str | None = None
    """What instances that train together have in common."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Announcement(Standing):
    """One program of a process, as it was at one moment; moments are those of the monotonic clock."""

    devices: tuple[str, ...]
    """As logs call them."""

    hardware: tuple[str, ...]
    """What the cards themselves say who they are, by device; empty where a device has no such name."""

    tier: str
    activity: Activity
    since: float
    """When the program first came to a device."""

    moment: float
    """When this was said."""

    calls: int
    steps: int
    """Micro-batches, as everywhere."""

    updates: int
    rate: float | None
    """Steps per second lately; None before the first."""

    period: float
    """Mean seconds from call to call."""

    def activity_at(self, moment: float) -> Activity:
        """What the program is doing now, as far as one can know: one that has long said nothing is idle."""
        silence = moment - self.moment
        if self.activity is Activity.RUNNING and silence > _PATIENCE * max(1.0, self.period):
            return Activity.IDLE
        return self.activity

    def as_text(self) -> str:
        """Write it down."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)})

    @staticmethod
    def from_text(text: str | bytes) -> Announcement:
        """Read what `as_text` has written; anything else raises a ValueError."""
        try:
            read = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(read, dict) or read.keys() != {field.name for field in fields(Announcement)}:
            raise ValueError("other fields than an announcement has")
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
        raise ValueError(f"{value!r} is no text")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list")
    return tuple(map(_text, value))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("a number too large") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r} is no time and no rate")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no count")
    return value
