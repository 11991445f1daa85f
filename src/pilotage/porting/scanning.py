"""Scans a repository before a port: places by kind, what is automatic for each target, and where to begin."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pilotage.errors import PortingError
from pilotage.porting.analysis.code.names import Names
from pilotage.porting.driver import port_texts
from pilotage.porting.finding import Finding, Severity
from pilotage.porting.places import TRAINING, places_of
from pilotage.porting.reading import paths_of_scripts, text_of
from pilotage.porting.report import Report
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["Scan", "ScannedFile", "TargetEstimate", "scan_paths"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScannedFile:
    """One script, and how many places of each kind it has."""

    path: Path
    lines: int
    places: Counter[str]

    @property
    def trains(self) -> bool:
        """Whether it makes a backward pass."""
        return bool(self.places[TRAINING])

    @property
    def total(self) -> int:
        """All places."""
        return sum(self.places.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetEstimate:
    """What a port to one target would do."""

    target: Target
    changed: int
    """Files that would be edited."""

    refused: int
    """Files that stay as they are because of something that cannot be converted."""

    left: Sequence[Finding]
    """Findings that have to be done by hand."""

    automatic: float
    """The fraction of all places that are converted automatically, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """The result of a scan."""

    files: Sequence[ScannedFile]
    unreadable: Sequence[str]
    """One line for each file that cannot be read."""

    estimates: Sequence[TargetEstimate]
    begin_with: Sequence[Path] = field(default=())
    """Files that train, those with the least to do by hand first."""

    @property
    def places(self) -> Counter[str]:
        """All places by kind."""
        return sum((each.places for each in self.files), Counter())

    def to_json(self) -> str:
        """The scan as JSON."""
        files = [{"path": str(each.path), "lines": each.lines, "places": dict(each.places)} for each in self.files]
        estimates = [
            {
                "target": each.target.value,
                "changed": each.changed,
                "refused": each.refused,
                "automatic": round(each.automatic, 3),
                "left": [str(finding) for finding in each.left],
            }
            for each in self.estimates
        ]
        begin_with = [str(each) for each in self.begin_with]
        whole = {"files": files, "unreadable": list(self.unreadable), "targets": estimates, "begin_with": begin_with}
        return json.dumps(whole, indent=2)


def scan_paths(paths: Iterable[Path], targets: Sequence[Target]) -> Scan:
    """Scan files and folders; files that cannot be read are listed and left out."""
    texts: dict[Path, str] = {}
    files: list[ScannedFile] = []
    unreadable: list[str] = []
    for path in paths_of_scripts(paths):
        try:
            text = text_of(path)
            files.append(_scanned(path, text))
            texts[path] = text
        except PortingError as error:
            unreadable.append(str(error))
    estimates = [_estimate(port_texts(texts, target), files) for target in targets]
    return Scan(files=files, unreadable=unreadable, estimates=estimates, begin_with=_first(files, estimates))


def _scanned(path: Path, text: str) -> ScannedFile:
    if path.suffix == ".ipynb":
        from pilotage.porting.notebooks import read_notebook

        source = Source(path, read_notebook(path, text).source)
    else:
        source = Source(path, text)
    names = Names(source)
    places = Counter(kind for node in ast.walk(source.tree) for kind in places_of(names, node))
    return ScannedFile(path=path, lines=source.line_count, places=places)


def _estimate(report: Report, files: Sequence[ScannedFile]) -> TargetEstimate:
    left = [each for each in report.findings if each.severity.is_left_to_do]
    refused = {each.path for each in left if each.severity is Severity.REFUSED}
    by_hand = Counter(each.path for each in left)
    total = sum(each.total for each in files)
    kept = sum(each.total if str(each.path) in refused else min(by_hand[str(each.path)], each.total) for each in files)
    return TargetEstimate(
        target=report.target,
        changed=sum(each.is_changed for each in report.files),
        refused=len(refused),
        left=left,
        automatic=1.0 if total == 0 else 1.0 - kept / total,
    )


def _first(files: Sequence[ScannedFile], estimates: Sequence[TargetEstimate]) -> list[Path]:
    by_hand = Counter(each.path for estimate in estimates for each in estimate.left)
    training = [each for each in files if each.trains]
    return [each.path for each in sorted(training, key=lambda each: (by_hand[str(each.path)], -each.total))]
