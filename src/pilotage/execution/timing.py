"""When the parts of a host call were done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTimes:
    """The moments of one call, by ``time.perf_counter``."""

    begun: float
    sent: float
    """When the inputs were on the device."""

    finished: tuple[float, ...]
    """When each part of the outputs was computed, in the order of the parts."""

    returned: float
    """When the outputs were on the host."""


@runtime_checkable
class Timed(Protocol):
    """An executable that knows when the parts of its last call were done."""

    @property
    def times(self) -> CallTimes | None:
        """The moments of the last call; None where only the device knows them."""
        ...
