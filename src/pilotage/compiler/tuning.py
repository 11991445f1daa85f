"""The fastest way to run a program, as measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pilotage.options.choices import Tier


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """The fastest way to run a program on one device."""

    tier: Tier
    channels_last: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    """The time of one host call's steps, for each way."""

    reason: str = ""
    """Why ways were rejected."""

    note: str = ""
    """What could not be checked, and why."""

    dropped: tuple[str, ...] = ()
    """A line for each of our changes that this code was compiled without, because it failed."""

    parts: Mapping[str, float] = field(default_factory=dict)
    """How many seconds each part of the compilation took, until this code was stored."""

    @property
    def gain(self) -> str:
        """A description of the measurement."""
        if not self.seconds:
            return self.reason
        measured = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, seconds in self.seconds.items())
        return f"{measured}; {self.note}" if self.note else measured

    @property
    def duration(self) -> str:
        """How long compiling took, and which parts took longest."""
        longest = sorted(self.parts.items(), key=lambda part: -part[1])
        return f"{sum(self.parts.values()):.1f} s ({', '.join(f'{name} {seconds:.1f} s' for name, seconds in longest)})"

    @property
    def failure(self) -> str:
        """Why compiling failed; empty if it succeeded."""
        was_timed = any(name.startswith(Tier.COMPILED.value) for name in self.seconds)
        return "" if was_timed or self.tier is Tier.COMPILED else self.reason

    def to_data(self) -> dict[str, Any]:
        """The tuning as plain data."""
        return {**asdict(self), "tier": self.tier.value}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Restore a tuning from plain data."""
        return cls(**{**data, "tier": Tier(data["tier"]), "dropped": tuple(data.get("dropped", ()))})
