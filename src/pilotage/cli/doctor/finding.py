"""What the doctor finds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Examination", "Finding", "Section", "Verdict"]


class Verdict(StrEnum):
    """What a finding means for the user."""

    GOOD = "good"
    ABSENT = "absent"
    """Not present, which is fine."""
    WARNING = "warning"
    """The engine runs, but not as well as expected."""
    PROBLEM = "problem"
    """The engine cannot run until this is fixed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    value: str
    verdict: Verdict = Verdict.GOOD
    remedy: str | None = None
    """What to do about a warning or a problem."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """The details for `--json`."""


@dataclass(frozen=True, slots=True)
class Section:
    """Findings that belong together."""

    title: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings."""

    sections: tuple[Section, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the sections."""
        return tuple(finding for section in self.sections for finding in section.findings)

    @property
    def can_run(self) -> bool:
        """Whether the engine can run here."""
        return not any(finding.verdict is Verdict.PROBLEM for finding in self.findings)
