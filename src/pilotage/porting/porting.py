"""One port while it is planned: rules read the project here and add edits and findings."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from typing import Any

from pilotage.porting.finding import Finding, Severity
from pilotage.porting.plan import Plan
from pilotage.porting.project import Project
from pilotage.porting.sources.edits import Edit
from pilotage.porting.sources.removal import Removal, removal_edits
from pilotage.porting.sources.source import Source, lines_in
from pilotage.porting.target import Target

__all__ = ["Porting"]


class Porting:
    """The edits and findings that the rules have planned so far."""

    def __init__(self, project: Project, target: Target) -> None:
        self.project = project
        self.target = target
        self.findings: list[Finding] = []
        self.known: dict[str, Any] = {}
        """Results that rules have computed from the plan and need again."""
        self._edits: defaultdict[Source, list[Edit]] = defaultdict(list)
        self._removed: defaultdict[Source, dict[ast.stmt, Removal]] = defaultdict(dict)
        self._unindented: defaultdict[Source, list[tuple[int, int, str]]] = defaultdict(list)

    @cached_property
    def plan(self) -> Plan:
        """The plan for a target that runs a step as one call."""
        return Plan(self.project, self.target)

    @cached_property
    def has_work(self) -> bool:
        """Whether there is anything to convert: a training step, or an evaluation."""
        return bool(self.plan.steps or self.plan.evaluations)

    def edits(self, source: Source) -> list[Edit]:
        """The edits of one script, with those that remove statements."""
        planned = [self._moved_out(source, each) for each in self._edits[source]]
        return [*planned, *removal_edits(source, self._removed[source])]

    def removed(self, source: Source) -> set[ast.stmt]:
        """The statements of one script to remove."""
        return set(self._removed[source])

    def edit(self, source: Source, start: int, end: int, text: str, rule: str, *, first: bool = False) -> None:
        """Replace a part of the text; equal positions insert, ``first`` before other insertions at the same place."""
        edit = Edit(start=start, end=end, text=text, rule=rule)
        self._edits[source].insert(0 if first else len(self._edits[source]), edit)

    def unindent(self, source: Source, first: int, last: int, unit: str, rule: str) -> None:
        """Move lines out of their block, with what other rules insert between them."""
        for number in range(first, last + 1):
            if source.line(number).startswith(unit):
                begin = source.line_start(number)
                self.edit(source, begin, begin + len(unit), "", rule)
        self._unindented[source].append((source.line_start(first), source.line_start(last + 1), unit))

    def _moved_out(self, source: Source, edit: Edit) -> Edit:
        """An insertion of whole lines, with the indentation that the lines around it will have."""
        is_lines = edit.start == edit.end and edit.text.endswith("\n")
        for start, end, unit in self._unindented[source] if is_lines else ():
            if start <= edit.start <= end:
                return replace(edit, text="".join(line.removeprefix(unit) for line in lines_in(edit.text)))
        return edit

    def replace(self, source: Source, node: ast.AST, text: str, rule: str) -> None:
        """Replace a node by other code."""
        self.edit(source, *source.span(node), text, rule)

    def remove(self, source: Source, statement: ast.stmt, rule: str, *, with_comments: bool = True) -> None:
        """Remove a statement with its lines, and the comment right above it."""
        self._removed[source].setdefault(statement, Removal(rule=rule, with_comments=with_comments))

    def find(
        self, source: Source, node: ast.AST, rule: str, severity: Severity, message: str, remedy: str = ""
    ) -> None:
        """Report something about a place; each place and rule once."""
        line, column = source.reported_place(node)
        finding = Finding(
            rule=rule,
            severity=severity,
            path=source.name,
            line=line,
            column=column,
            message=message,
            remedy=remedy,
        )
        if finding not in self.findings:
            self.findings.append(finding)
