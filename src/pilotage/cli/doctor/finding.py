"""The values that the doctor's parts return and its displays show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Examination", "Finding", "Section", "Verdict"]


class Verdict(StrEnum):
    """What a finding means for the user."""

    GOOD = "good"
    ABSENT = "absent"
    """Not there, and nothing is wrong with that."""
    WARNING = "warning"
    """The engine runs, but not as well or not as the user may expect."""
    PROBLEM = "problem"
    """The engine cannot run before this is mended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    value: str
    verdict: Verdict = Verdict.GOOD
    remedy: str | None = None
    """What to do about a warning or a problem."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """The same for programs, in `--json`."""


@dataclass(frozen=True, slots=True)
class Section:
    """Findings that belong together."""

    title: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was found."""

    sections: tuple[Section, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the sections."""
        return tuple(finding for section in self.sections for finding in section.findings)

    @property
    def can_run(self) -> bool:
        """Whether the engine can run here."""
        return not any(finding.verdict is Verdict.PROBLEM for finding in self.findings)
