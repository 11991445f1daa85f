"""A device, and what its sensors say."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One device of this machine; what it does not tell is None."""

    id: str
    """As logs and records call it."""

    maker: str
    name: str
    identity: str = ""
    """What the card says who it is, whatever number a process sees it by."""

    driver: str | None = None
    is_emulated: bool = False
    memory_used: int | None = None
    """In bytes, as the next one."""

    memory_total: int | None = None
    utilisation: float | None = None
    """Between 0 and 1."""

    temperature: float | None = None
    """In degrees Celsius, as the next one."""

    board_temperature: float | None = None
    power: float | None = None
    """In watts."""

    clock: float | None = None
    """In megahertz."""

    pids: frozenset[int] = field(default=frozenset())
    """Processes that the driver says are on it."""


@dataclass(frozen=True, slots=True)
class Found:
    """Devices of one maker, and what there is to say about looking for them."""

    devices: tuple[Device, ...] = ()
    note: str | None = None
