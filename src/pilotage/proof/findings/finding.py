"""One finding, as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pilotage.proof.records import ScriptRecord

__all__ = ["NAMES", "Finding", "Rule", "in_order"]

NAMES = (
    "wrapper-lost",
    "host-fallback",
    "optimizer-unused",
    "schedule-not-applied",
    "no-gradient-exchange",
    "samples-dropped",
    "samples-repeated",
    "precision-not-as-asked",
    "loss-root-differs",
    "loss-depends-on-batch-split",
    "eval-mode-in-training",
    "weights-not-saved",
)
"""All names, in the order in which findings are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that a script does, and that its author did not intend."""

    name: str
    where: str | None
    """The user's line, as ``file:line``; None if no line of the user's is known."""

    message: str
    remedy: str

    @property
    def file(self) -> str | None:
        """The file of the line."""
        return None if self.where is None else self.where.rpartition(":")[0]

    @property
    def line(self) -> int | None:
        """The number of the line."""
        return None if self.where is None else int(self.where.rpartition(":")[2])


Rule: TypeAlias = Callable[[ScriptRecord, ScriptRecord | None], Iterator[Finding]]
"""Finds in the record of a script, given that of the original if there is one."""


def in_order(found: list[Finding]) -> list[Finding]:
    """Each finding once, in the order of the names."""
    once = {(each.name, each.where): each for each in reversed(found)}
    return sorted(once.values(), key=lambda each: (NAMES.index(each.name), each.where or ""))
