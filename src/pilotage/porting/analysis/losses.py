"""How a step computes its loss: by one of torch's functions, and divided by the number of accumulated passes."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.accumulation import division_by
from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.kinds import torch_name
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.project import Project

__all__ = ["LossReading"]


class LossReading:
    """The properties of the loss of one step."""

    def __init__(self, project: Project, step: TrainingStep, nodes: list[ast.AST]) -> None:
        self._project = project
        self._step = step
        self._source = step.source
        self._nodes = nodes
        self.divisions = self._found_divisions()
        """Divisions by the number of passes: statements to leave out, or quotients of which the dividend is kept."""

    def _loss_value(self) -> ast.expr | None:
        """The expression that computes the loss, without a division by the number of passes."""
        value: ast.expr | None = self._step.loss if path_of(self._step.loss) is None else None
        for node in self._step.region:
            for each in ast.walk(node):
                if isinstance(each, ast.AugAssign) and path_of(each.target) == self._step.loss_name:
                    value = value if each in self.divisions else None
                if isinstance(each, ast.Assign) and path_of(each.targets[0]) == self._step.loss_name:
                    value = value if each in self.divisions else each.value
        accumulation = self._step.accumulation
        if value is not None and accumulation is not None:
            value = division_by(value, accumulation.count) or value
        return value

    def is_torch_loss(self) -> bool:
        """Whether the loss is exactly the result of one loss function of torch."""
        value = self._loss_value()
        calls = [each for node in self._nodes for each in ast.walk(node) if self._is_loss_call(each)]
        return len(calls) == 1 and calls[0] is value

    def _is_loss_call(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        name = self._project.names[self._source].dotted(node.func)
        if name is not None:
            return name.startswith("torch.nn.functional.") and name.endswith(("loss", "cross_entropy", "kl_div"))
        found = origins(self._project, self._source, node.func)
        names = [torch_name(self._project, each) or "" for each in found]
        return bool(names) and all(each.startswith("torch.nn.") and each.endswith("Loss") for each in names)

    def _found_divisions(self) -> tuple[ast.AST, ...]:
        accumulation = self._step.accumulation
        if accumulation is None:
            return ()
        found: list[ast.AST] = []
        for node in self._nodes:
            for each in ast.walk(node):
                if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Div):
                    if ast.dump(each.value) == ast.dump(accumulation.count):
                        found.append(each)
                elif isinstance(each, ast.BinOp) and division_by(each, accumulation.count) is not None:
                    parent = self._source.parents[each]
                    is_own = isinstance(parent, ast.Assign) and path_of(each.left) == path_of(parent.targets[0])
                    is_whole = is_own and (parent in self._step.region or self._is_only_division(parent))
                    found.append(parent if is_whole else each)
        only = [self._source.parents[each] for each in found if self._is_only_division(each)]
        return (*found, *only)

    def _is_only_division(self, statement: ast.AST) -> bool:
        """Whether a statement is the only one in a condition of the region: ``if n > 1: loss = loss / n``."""
        parent = self._source.parents[statement]
        return isinstance(parent, ast.If) and parent.body == [statement] and not parent.orelse

    def criterion(self, inputs: list[str]) -> str | None:
        """The criterion of a step that is only ``output = model(x); loss = criterion(output, y)``; None otherwise."""
        step = self._step
        if len(step.region) != 2 or len(step.models) != 1:
            return None
        first, second = step.region
        if not isinstance(first, ast.Assign) or not isinstance(second, ast.Assign):
            return None
        call, loss = first.value, second.value
        if not isinstance(call, ast.Call) or not isinstance(loss, ast.Call) or call.keywords or loss.keywords:
            return None
        is_plain = (
            path_of(call.func) == step.models[0]
            and path_of(second.targets[0]) == path_of(step.loss)
            and len(loss.args) == 2
            and path_of(loss.args[0]) == path_of(first.targets[0]) is not None
            and [path_of(each) for each in (*call.args, loss.args[1])] == inputs
        )
        return ast.unparse(loss.func) if is_plain else None
