"""The port: read, plan by all rules, leave out what is refused, apply the edits."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pilotage.errors import PortingError
from pilotage.porting.finding import Finding, Severity
from pilotage.porting.inlining import with_inlined_steps
from pilotage.porting.notebooks import Notebook, in_cell, read_notebook
from pilotage.porting.porting import Porting
from pilotage.porting.project import Project
from pilotage.porting.reading import paths_of_scripts, text_of
from pilotage.porting.report import PortedFile, Report
from pilotage.porting.rule import Rule
from pilotage.porting.rules.registry import rules_for
from pilotage.porting.sources.blocks import fill_empty_blocks
from pilotage.porting.sources.edits import apply_edits
from pilotage.porting.sources.own_lines import with_own_lines
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["port_paths", "port_texts"]

_MOST_ROUNDS = 3
"""How often statements are put on separate lines; once is enough unless that makes a rule match more."""


def port_paths(paths: Iterable[Path], target: Target) -> Report:
    """Port files and packages; nothing is written."""
    return port_texts({path: text_of(path) for path in paths_of_scripts(paths)}, target)


def port_texts(texts: dict[Path, str], target: Target, *, only: Rule | None = None) -> Report:
    """Port scripts that are given as text; with ``only``, just the edits and findings of one rule are kept."""
    returns = {path for path, text in texts.items() if "\r" in text and "\n" not in text}
    if returns:
        # Line endings of old Macintoshes (a carriage return): replaced by line feeds while the rules run.
        plain = {path: text.replace("\r", "\n") if path in returns else text for path, text in texts.items()}
        report = port_texts(plain, target, only=only)
        return replace(report, files=[_with_returns(each) if each.path in returns else each for each in report.files])
    notebooks = {path: read_notebook(path, text) for path, text in texts.items() if path.suffix == ".ipynb"}
    sources = [Source(path, notebooks[path].source if path in notebooks else text) for path, text in texts.items()]
    if target in PROGRAMS:
        sources = with_inlined_steps(sources)
    porting = first = _planned(sources, target)
    for _ in range(_MOST_ROUNDS):
        divided = [with_own_lines(source, porting.edits(source)) for source in porting.project.sources]
        if all(new is old for new, old in zip(divided, porting.project.sources, strict=True)):
            break
        porting = _planned(divided, target)
    left = _left_as_they_are(porting)
    files = [_ported(porting, source, only, is_left=source in left) for source in porting.project.sources]
    findings = [each for each in _findings(first, porting) if only is None or each.rule == only.name]
    return Report(
        target=target,
        files=[_as_notebook(each, notebooks.get(each.path), texts[each.path]) for each in files],
        findings=[in_cell(each, notebooks.get(Path(each.path))) for each in findings],
    )


def _with_returns(file: PortedFile) -> PortedFile:
    return replace(file, before=file.before.replace("\n", "\r"), after=file.after.replace("\n", "\r"))


def _planned(sources: list[Source], target: Target) -> Porting:
    """Collect the edits and findings of all rules."""
    porting = Porting(Project(sources), target)
    for rule in rules_for(target):
        rule.apply(porting)
    for source in sources:
        fill_empty_blocks(porting, source)
    return porting


def _findings(first: Porting, last: Porting) -> list[Finding]:
    """The findings, with columns of the original file if statements were put on separate lines since."""
    plain = [[replace(each, column=1) for each in porting.findings] for porting in (first, last)]
    return first.findings if plain[0] == plain[1] else last.findings


def _as_notebook(file: PortedFile, notebook: Notebook | None, text: str) -> PortedFile:
    if notebook is None:
        return file
    return replace(file, before=text, after=notebook.replaced(file.after) if file.is_changed else text)


def _ported(porting: Porting, source: Source, only: Rule | None, *, is_left: bool) -> PortedFile:
    edits = [] if is_left else [each for each in porting.edits(source) if only is None or each.rule == only.name]
    newline = source.newline
    if newline != "\n":
        edits = [replace(each, text=each.text.replace(newline, "\n").replace("\n", newline)) for each in edits]
    after = apply_edits(source.text, edits) if edits else source.file_text
    if only is None:
        _require_python(source, after)
    rules = tuple(dict.fromkeys(each.rule for each in edits))
    return PortedFile(path=source.path, before=source.file_text, after=after, rules=rules)


def _require_python(source: Source, after: str) -> None:
    try:
        ast.parse(after)
    except SyntaxError as error:
        raise PortingError(
            f"{source.path}: the port would not be valid Python ({error.msg} in line {error.lineno}), so nothing was "
            "written; please report this."
        ) from None


def _left_as_they_are(porting: Porting) -> set[Source]:
    """The scripts with a refusal, and those that they work with, so that nothing is converted by half."""
    project = porting.project
    refused = {each.path for each in porting.findings if each.severity is Severity.REFUSED}
    left = {source for source in project.sources if source.name in refused}
    linked: dict[Source, set[Source]] = {source: set() for source in project.sources}
    for source in project.sources:
        for other in project.imports(source):
            linked[source].add(other)
            linked[other].add(source)
    waiting = list(left)
    while waiting:
        for other in linked[waiting.pop()] - left:
            left.add(other)
            waiting.append(other)
    return left
