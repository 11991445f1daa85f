"""When the parts of a host call were done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTimes:
    """When the parts of one call were done, by ``time.perf_counter``."""

    begun: float
    sent: float
    """When the inputs were on the device."""

    finished: tuple[float, ...]
    """When each part of the outputs was computed, in the order of the parts."""

    returned: float
    """When the outputs were on the host."""
