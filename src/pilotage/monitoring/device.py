"""A device and its sensors."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One device of this machine; None means that a value is not reported.

    Large because each field is a column of the monitor.
    """

    id: str
    """Its name in logs and records."""

    maker: str
    name: str
    identity: str = ""
    """The UUID of the card, which does not depend on how a process numbers its cards."""

    driver: str | None = None
    is_emulated: bool = False
    memory_used: int | None = None
    """In bytes, as `memory_total`."""

    memory_total: int | None = None
    utilisation: float | None = None
    """Between 0 and 1."""

    temperature: float | None = None
    """In degrees Celsius, as `board_temperature`."""

    board_temperature: float | None = None
    power: float | None = None
    """In watts."""

    clock: float | None = None
    """In megahertz."""

    pids: frozenset[int] = field(default=frozenset())
    """Processes that use it according to the driver."""


@dataclass(frozen=True, slots=True)
class FoundDevices:
    """Devices of one maker, and a note about the search."""

    devices: tuple[Device, ...] = ()
    note: str | None = None
