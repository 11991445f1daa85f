"""What was found to be fastest, by measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pilotage.options.choices import Tier


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """How a program runs best on one device."""

    tier: Tier
    channels_last: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    """What one host call's steps took, by the way they were run."""

    reason: str = ""
    """Why there is no compiled code, where there is none."""

    note: str = ""
    """What could not be checked of the results, and why."""

    @property
    def gain(self) -> str:
        """The measurement in words."""
        if not self.seconds:
            return self.reason
        measured = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, seconds in self.seconds.items())
        return f"{measured}; {self.note}" if self.note else measured

    def to_data(self) -> dict[str, Any]:
        """The tuning as plain data."""
        return {**asdict(self), "tier": self.tier.value}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The tuning that was written as this data."""
        return cls(**{**data, "tier": Tier(data["tier"])})
