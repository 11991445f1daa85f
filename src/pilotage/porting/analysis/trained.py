"""Which variables are trained: those whose parameters an optimizer was given."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pilotage.porting.analysis.code.flow import path_of, uses
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.kinds import Kind, kind_of, torch_name
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["Trained", "trained_by"]

_OWN_PARAMETERS = ("self.parameters", "self.named_parameters")
"""How a module refers to itself when it makes its own optimizer."""


class Trained:
    """The modules that an optimizer trains, by their origins."""

    def __init__(self, project: Project, source: Source, optimizer: ast.expr) -> None:
        self._project = project
        self.makers: set[ast.AST] = set()
        """The origins of the trained modules, and of the lists of parameters in between."""
        self.modules: set[ast.AST] = set()
        """The origins that are known to be modules."""
        self.paths: list[tuple[Source, str]] = []
        """Their names where the optimizer is made."""
        for origin in origins(project, source, optimizer):
            if isinstance(origin.node, ast.Call) and origin.node.args and torch_name(project, origin) is not None:
                self._note(origin.source, origin.node.args[0], 0)

    def is_one(self, source: Source, node: ast.expr) -> bool:
        """Whether a variable holds a trained module."""
        if not self.makers:
            return kind_of(self._project, source, node) is Kind.MODULE
        found = {each.node for each in origins(self._project, source, node)}
        return bool(found & self.makers)

    def hidden_in(self, source: Source, function: Scope, depth: int = 0) -> bool:
        """Whether a function of the project uses a trained module."""
        for node in ast.walk(function.node):
            if isinstance(node, ast.Name | ast.Attribute) and path_of(node) is not None and self.is_one(source, node):
                return True
            if isinstance(node, ast.Call) and depth < 3:
                known = self._project.callee(source, node)
                is_other = known is not None and known[1].is_function and known[1] is not function
                if is_other and known is not None and self.hidden_in(*known, depth + 1):
                    return True
        return False

    def _note(self, source: Source, node: ast.expr, depth: int) -> None:
        for path, each, is_written in (found for part in _parameters_in(node) for found in uses(part)):
            if is_written or self._project.names[source].dotted(each) is not None:
                continue
            scope = self._project.scope_of(source, each)
            if path in _OWN_PARAMETERS and scope.method_of is not None:
                instances = {site.call for site in self._project.instances(scope.method_of)}
                self.makers |= instances
                self.modules |= instances
                continue
            if scope.resolve(path) is None:
                continue
            kind = kind_of(self._project, source, each)
            if kind is Kind.FUNCTION:
                continue
            made = origins(self._project, source, each)
            if kind is not Kind.MODULE and depth < 2:
                # A list of parameters or groups: its elements are followed.
                for origin in made:
                    if isinstance(origin.node, ast.expr) and origin.node is not each:
                        self._note(origin.source, origin.node, depth + 1)
            self.makers |= {origin.node for origin in made}
            if kind is Kind.MODULE:
                self.modules |= {origin.node for origin in made}
            self.paths.append((source, path))


def _parameters_in(node: ast.expr) -> list[ast.expr]:
    """The parts of an expression that are parameters; in a group, learning rates and the like are not."""
    if isinstance(node, ast.List | ast.Tuple):
        return [part for each in node.elts for part in _parameters_in(each)]
    if isinstance(node, ast.Dict):
        names = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        return [value for name, value in zip(names, node.values, strict=True) if name in ("params", None)]
    return [node]


def trained_by(project: Project, source: Source, optimizer: ast.expr, called: Iterable[ast.expr]) -> set[str]:
    """The called variables that an optimizer trains."""
    trained = Trained(project, source, optimizer)
    return {path_of(each) or "" for each in called if trained.is_one(source, each)}
