"""The list of packages that a program asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pilotage.porting.finding import Finding, Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.target import Target

__all__ = ["RULE"]

_BROUGHT = re.compile(r"(torch|tensorflow)\b(?![-_])", re.IGNORECASE)
_DEPTH = 4


def _apply(porting: Porting) -> None:
    for path in _lists(porting):
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        porting.findings += [
            _finding(path, number, line) for number, line in enumerate(lines, 1) if _BROUGHT.match(line)
        ]


def _lists(porting: Porting) -> Iterable[Path]:
    """The files beside the scripts and above them, up to the folder that holds them all."""
    folders = [source.path.parent for source in porting.project.sources]
    above = {parent for folder in folders for parent in [folder, *folder.parents][:_DEPTH]}
    shared = {each for each in above if all(each in [folder, *folder.parents] for folder in folders)}
    nearest = max(shared, key=lambda each: len(each.parts), default=None)
    found = [each / "requirements.txt" for each in {*folders, *([nearest] if nearest is not None else [])}]
    return sorted({each for each in found if each.is_file()})


def _finding(path: Path, line: int, text: str) -> Finding:
    return Finding(
        rule=RULE.name,
        severity=Severity.WARNING,
        path=str(path),
        line=line,
        column=1,
        message=f"pip would replace the build that Habana installs: {text.strip()}.",
        remedy="Leave this line out on a host with Gaudi.",
    )


RULE = Rule(
    name="hpu-requirements",
    targets=frozenset({Target.HPU}),
    what="Lines for torch and TensorFlow in `requirements.txt` are reported.",
    why="Habana installs its own builds, which pip would replace.",
    example=Example(before="import torch\n"),
    apply=_apply,
)
