"""The module that joins a model and its loss, as text."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import assigned, path_of, uses
from pilotage.porting.analysis.devices import without_moves
from pilotage.porting.analysis.gradient_modes import gradient_switches
from pilotage.porting.plan import PlannedStep
from pilotage.porting.project import Project
from pilotage.porting.sources.edits import Edit, apply_edits
from pilotage.porting.sources.layout import indentation, indented, lines_of
from pilotage.porting.sources.source import Source

__all__ = ["JoinedClass"]

_RULE = "model-with-loss"
_SUMMARY = '"""The model and its loss as one module, so that a training step is one call."""'


class JoinedClass:
    """Writes the class of one step."""

    def __init__(self, project: Project, planned: PlannedStep, inlined: dict[str, str], unit: str) -> None:
        self._project = project
        self._planned = planned
        self._step = planned.step
        self._source = planned.step.source
        self._inlined = inlined
        self._unit = unit

    def text(self, base: str, mark: str | None) -> str:
        """The class; ``mark`` marks the loss, with the loss as ``{}``."""
        unit = self._unit
        lines = [f"class {self._planned.class_name}({base}):", f"{unit}{_SUMMARY}", ""]
        lines += [f"{unit}def __init__(self{self._parameters()}):", f"{unit * 2}super().__init__()"]
        for path, attribute in self._planned.joint.dependencies.items():
            lines.append(f"{unit * 2}self.{attribute} = {self._inlined.get(path, attribute)}")
        lines += ["", f"{unit}def forward(self{self._inputs()}):"]
        return "\n".join(lines) + "\n" + self._body() + f"{unit * 2}return {self._returned(mark)}\n"

    def arguments(self) -> list[str]:
        """The variables that the class is made with, in order."""
        return [path for path in self._planned.joint.dependencies if path not in self._inlined]

    def _parameters(self) -> str:
        names = self._planned.joint.dependencies
        return "".join(f", {names[path]}" for path in self.arguments())

    def _inputs(self) -> str:
        return "".join(f", {each.stars}{each.name}" for each in self._planned.joint.inputs)

    def _returned(self, mark: str | None) -> str:
        *others, loss = (_local(path) for path in self._planned.joint.outputs)
        return ", ".join([*others, mark.format(loss) if mark is not None else loss])

    def _body(self) -> str:
        divisions = set(self._planned.joint.divisions)
        parts = [
            self._statement(each, is_first=number == 0)
            for number, each in enumerate(self._step.region)
            if each not in divisions
        ]
        if path_of(self._step.loss) is None:
            parts.append(f"{self._unit * 2}{_local(self._step.loss_name)} = {self._rewritten(self._step.loss)}\n")
        return "".join(parts)

    def _statement(self, statement: ast.stmt, *, is_first: bool) -> str:
        start, end = lines_of(self._source, statement, with_comments=not is_first)
        text = self._edited(statement, start, end)
        text = text if text.endswith("\n") else text + "\n"
        before = indentation(self._source, statement)
        if not self._source.text[start:end].startswith((before, "#")):
            # A statement that shares its line with others.
            text = f"{before}{text.strip().strip(';').strip()}\n"
        return indented(text, self._unit * 2, from_=before)

    def _rewritten(self, node: ast.expr) -> str:
        return self._edited(node, *self._source.span(node))

    def _edited(self, node: ast.AST, start: int, end: int) -> str:
        edits = [*self._renamed(node), *without_moves(self._project, self._source, node, _RULE), *self._undivided(node)]
        switches = gradient_switches(self._project, self._source, node)
        edits += [
            self._edit(each, f"{self._source.segment(each.func).removesuffix('set_grad_enabled')}enable_grad()")
            for each in switches
        ]
        moved = [
            Edit(start=each.start - start, end=each.end - start, text=each.text, rule=_RULE)
            for each in edits
            if start <= each.start and each.end <= end
        ]
        return apply_edits(self._source.text[start:end], moved)

    def _renamed(self, node: ast.AST) -> list[Edit]:
        joint = self._planned.joint
        local = {path for each in self._step.region for path in assigned(each)}
        replaced: dict[ast.AST, str] = {part: each.name for each in joint.inputs for part in each.replaces}
        edits = []
        for part, name in replaced.items():
            if part is node or node in self._source.ancestors(part):
                edits.append(self._edit(part, name))
        for path, use, _ in uses(node):
            if path in joint.constants:
                edits.append(self._edit(use, joint.constants[path]))
            elif path in joint.dependencies:
                edits.append(self._edit(use, f"self.{joint.dependencies[path]}"))
            elif path.startswith("self.") and path in local:
                edits.append(self._edit(use, _local(path)))
        return edits

    def _undivided(self, node: ast.AST) -> list[Edit]:
        """Leave out the division by the number of accumulated passes; the program averages by itself."""
        edits = []
        for each in ast.walk(node):
            if isinstance(each, ast.Assign) and each.value in self._planned.joint.divisions and _is_itself(each):
                edits += [
                    Edit(start=start, end=end, text="", rule=_RULE) for start, end in [lines_of(self._source, each)]
                ]
            elif each in self._planned.joint.divisions and isinstance(each, ast.BinOp):
                _, end = _with_brackets(self._source, each.left)
                edits.append(Edit(start=end, end=self._source.span(each)[1], text="", rule=_RULE))
            elif each in self._planned.joint.divisions and isinstance(each, ast.AugAssign):
                edits.append(self._edit(each, "pass"))
        return edits

    def _edit(self, node: ast.AST, text: str) -> Edit:
        start, end = self._source.span(node)
        return Edit(start=start, end=end, text=text, rule=_RULE)


def _is_itself(statement: ast.Assign) -> bool:
    """Whether a statement divides a variable, and does nothing without the division."""
    value = statement.value
    return isinstance(value, ast.BinOp) and [path_of(each) for each in statement.targets] == [path_of(value.left)]


def _local(path: str) -> str:
    return path.removeprefix("self.").lstrip("_") if path.startswith("self.") else path


def _with_brackets(source: Source, node: ast.expr) -> tuple[int, int]:
    """Where an expression ends, with the brackets around it."""
    start, end = source.span(node)
    while source.text[end : end + 1] == ")" and source.text[start - 1 : start] == "(":
        start, end = start - 1, end + 1
    return start, end
