"""The result of a port: files before and after, and findings."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pilotage.porting.finding import Finding
from pilotage.porting.line_diff import unified_diff
from pilotage.porting.rules.registry import RULES
from pilotage.porting.target import Target

__all__ = ["PortedFile", "Report"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PortedFile:
    """One file before and after."""

    path: Path
    before: str
    after: str
    rules: tuple[str, ...] = ()
    """The rules that edited it."""

    @property
    def is_changed(self) -> bool:
        """Whether the port edits this file."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        lines = unified_diff(_lines(self.before), _lines(self.after), str(self.path))
        return "".join(lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A port as a value; nothing is written yet."""

    target: Target
    files: Sequence[PortedFile]
    findings: Sequence[Finding]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do by hand."""
        return not any(finding.severity.is_left_to_do for finding in self.findings)

    def to_json(self) -> str:
        """The report as JSON, without the texts."""
        return json.dumps(
            {
                "target": self.target.value,
                "complete": self.is_complete,
                "files": [
                    {"path": str(each.path), "changed": each.is_changed, "rules": list(each.rules)}
                    for each in self.files
                ],
                "findings": [
                    {
                        "rule": each.rule,
                        "severity": each.severity.value,
                        "path": each.path,
                        "line": each.line,
                        "column": each.column,
                        "message": each.message,
                        "remedy": each.remedy,
                    }
                    for each in self.findings
                ],
                "guides_not_followed": [
                    {"rule": rule.name, "guide": each.guide, "edit": each.edit, "instead": each.instead}
                    for rule in RULES
                    if any(rule.name in file.rules for file in self.files)
                    for each in rule.not_followed
                ],
            },
            indent=2,
        )


def _lines(text: str) -> list[str]:
    # Only at line feeds, as `patch` and `git apply` do.
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines
