"""The first exchange of a training program, which finds instances that are about to exchange something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pilotage.distributed.values import Value
from pilotage.errors import DistributedError

BEFORE_COMPILING = "compile the program before its first call"
WITH_WEIGHTS = "exchange its weights"

Settings = Mapping[str, str | int]
"""Options that must be the same in all processes, by name."""


class GatheringGroup(Protocol):
    """Processes that gather values, some of which may still be compiling."""

    @property
    def kind(self) -> str:
        """What messages call one of its processes."""
        ...

    def wait_for_all(self) -> None:
        """Wait for all processes."""
        ...

    def gather(self, value: Value) -> list[Value]:
        """The value of each process."""
        ...


def gather_at(moment: str, group: GatheringGroup, value: Value, settings: Settings | None = None) -> list[Value]:
    """The value of each process; raises in all of them unless they are at the same moment and have these settings."""
    group.wait_for_all()
    here = dict(settings or {})
    everyone = group.gather((moment, here, value))
    for number, (other_moment, there, _) in enumerate(everyone):
        if other_moment != moment:
            raise DistributedError(
                f"{group.kind} {number} is about to {other_moment}, but this one to {moment}. Give all instances the "
                "same tier, by the option tier or by PILOTAGE_TIER."
            )
        if (name := next((name for name in here if there[name] != here[name]), None)) is not None:
            raise DistributedError(
                f"{group.kind} {number} has {name}={there[name]!r}, but this one {name}={here[name]!r}. Give all "
                "instances the same options and the same tier."
            )
    return [each for _, _, each in everyone]
