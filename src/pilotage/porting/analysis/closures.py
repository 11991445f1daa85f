"""Functions that are given to an optimizer: ``optimizer.step(closure)``."""

from __future__ import annotations

import ast
import re

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.kinds import torch_name
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["calls_closure_once", "closure_call"]


def closure_call(scope: Scope) -> ast.Call | None:
    """The call of ``step`` that a function is given to."""
    if not isinstance(scope.node, Function):
        return None
    for node in scope.source.nodes:
        is_step = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"
        if is_step and isinstance(node, ast.Call) and any(path_of(each) == scope.node.name for each in node.args):
            return node
    return None


def calls_closure_once(project: Project, source: Source, optimizer: ast.expr) -> bool:
    """Whether an optimizer calls a closure once in each step, as all but LBFGS do."""
    names = [torch_name(project, each) or "" for each in origins(project, source, optimizer)]
    return bool(names) and all(re.fullmatch(r"torch\.optim\.(?!LBFGS$)\w+", each) for each in names)
