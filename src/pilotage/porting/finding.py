"""A report of a port about one place in a script."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Severity"]


class Severity(Enum):
    """The consequence of a finding for its file."""

    REFUSED = "refused"
    """It cannot be converted, so its file and the files that it works with stay as they are."""

    BY_HAND = "by hand"
    """The rest is converted; this has to be done by hand."""

    WARNING = "warning"
    """Converted, with a visible change of behaviour."""

    NOTE = "note"
    """Converted; what was chosen, and why."""

    @property
    def is_left_to_do(self) -> bool:
        """Whether something has to be edited by hand."""
        return self in (Severity.REFUSED, Severity.BY_HAND)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A place, the problem there, and what to do."""

    rule: str
    severity: Severity
    path: str
    line: int
    """From 1."""

    column: int
    """From 1, as editors count."""

    message: str
    remedy: str = ""
    """What to do by hand; empty if there is nothing to do."""

    @property
    def where(self) -> str:
        """The place in the form that editors and CI understand."""
        return f"{self.path}:{self.line}:{self.column}"

    def __str__(self) -> str:
        """The finding as one line."""
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.where}: {self.severity.value}: {self.message}{remedy} [{self.rule}]"
