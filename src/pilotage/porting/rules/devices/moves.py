"""Removes ``.to(device)`` and ``.cuda()``."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.devices import moves, without_moves
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.edits import apply_edits
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "device-moves"


def apply(porting: Porting) -> None:
    """Remove every move to a device."""
    if not porting.has_work:
        return
    for source in porting.project.sources:
        for node in source.nodes:
            if isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return | ast.AugAssign):
                _strip(porting, source, node)
            elif isinstance(node, ast.If | ast.While):
                _edit(porting, source, node.test)
            elif isinstance(node, ast.For):
                _edit(porting, source, node.iter)
            elif isinstance(node, ast.With):
                for item in node.items:
                    _edit(porting, source, item.context_expr)


def _strip(porting: Porting, source: Source, statement: ast.stmt) -> None:
    if isinstance(statement, ast.Expr) and any(
        call is statement.value for call, _ in moves(porting.project, source, statement)
    ):
        porting.remove(source, statement, NAME)
        return
    edits = without_moves(porting.project, source, statement, NAME)
    if isinstance(statement, ast.Assign) and edits and _does_nothing(source, statement, edits):
        porting.remove(source, statement, NAME)
        return
    for edit in edits:
        porting.edit(source, edit.start, edit.end, edit.text, NAME)


def _edit(porting: Porting, source: Source, node: ast.expr) -> None:
    for edit in without_moves(porting.project, source, node, NAME):
        porting.edit(source, edit.start, edit.end, edit.text, NAME)


def _does_nothing(source: Source, statement: ast.Assign, edits: list) -> bool:  # type: ignore[type-arg]
    """Whether an assignment only assigns variables to themselves once the moves are gone."""
    start, end = source.span(statement.value)
    moved = [type(each)(start=each.start - start, end=each.end - start, text=each.text, rule=NAME) for each in edits]
    value = apply_edits(source.text[start:end], moved)
    try:
        same = ast.dump(
            _Plain().visit(ast.parse(value.strip("()") if value.startswith("(") else value, mode="eval")).body
        )
    except SyntaxError:
        return False
    return any(same.replace("Load()", "Store()") == ast.dump(each) for each in statement.targets)


class _Plain(ast.NodeTransformer):
    """Replaces comprehensions that only copy their iterable, and choices between equal values, by their content."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.body if ast.dump(node.body) == ast.dump(node.orelse) else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._repeated(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._repeated(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        (generator, *others) = node.generators
        items, pair = generator.iter, ast.Tuple(elts=[node.key, node.value], ctx=ast.Load())
        is_all = isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) and items.func.attr == "items"
        if is_all and not others and not generator.ifs and _names(pair) == _names(generator.target):
            assert isinstance(items, ast.Call)
            assert isinstance(items.func, ast.Attribute)
            return items.func.value
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_copy = isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple") and len(node.args) == 1
        return node.args[0] if is_copy and not node.keywords else node

    def _repeated(self, node: ast.ListComp | ast.GeneratorExp) -> ast.AST:
        self.generic_visit(node)
        (generator, *others) = node.generators
        is_all = not others and not generator.ifs and _names(node.elt) == _names(generator.target)
        return generator.iter if is_all else node


def _names(node: ast.AST) -> str:
    return ast.dump(node).replace("Load()", "Store()")


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Calls that move tensors and modules to a device are removed, and so are statements that did nothing else.",
    why="The wrapped model moves its weights and inputs by itself; the script's own tensors stay on the host.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda")
model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x = x.to(device, non_blocking=True)
    y = y.float().to(device)
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda")
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    y = y.float()
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    ),
    apply=apply,
)
