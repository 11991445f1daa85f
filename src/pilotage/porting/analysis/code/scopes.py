"""Where names are bound: modules, classes and functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.sources.source import Source

__all__ = ["Function", "Scope", "Scopes"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Scope:
    """A module, class or function, and the nodes that bind its names."""

    def __init__(self, source: Source, node: ast.Module | ast.ClassDef | Function, parent: Scope | None) -> None:
        self.source = source
        self.node = node
        self.parent = parent
        self.bindings: defaultdict[str, list[ast.AST]] = defaultdict(list)
        """Names, arguments, imports and definitions; in a class also what methods assign to ``self``."""

    @property
    def is_function(self) -> bool:
        """Whether this is a function or method."""
        return isinstance(self.node, Function)

    @property
    def is_class(self) -> bool:
        """Whether this is a class."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def body(self) -> list[ast.stmt]:
        """The statements."""
        return self.node.body

    @property
    def method_of(self) -> Scope | None:
        """The class, if this is a method or a function inside of one."""
        scope: Scope | None = self
        while scope is not None and scope.is_function:
            if scope.parent is not None and scope.parent.is_class:
                return scope.parent
            scope = scope.parent
        return None

    def binds(self, path: str) -> bool:
        """Whether a variable is bound here."""
        return path in self.bindings

    def resolve(self, path: str) -> Scope | None:
        """The scope that binds a variable as seen from here; None for built-in and unknown ones."""
        if path.startswith("self."):
            return self.method_of
        scope: Scope | None = self
        while scope is not None:
            if scope.binds(path) and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None

    def parameters(self) -> list[ast.arg]:
        """The parameters of a function, in order."""
        if not isinstance(self.node, Function):
            return []
        given = self.node.args
        starred = [each for each in (given.vararg, given.kwarg) if each is not None]
        return [*given.posonlyargs, *given.args, *given.kwonlyargs, *starred]

    def is_parameter(self, path: str) -> bool:
        """Whether a variable is a parameter of this function."""
        return any(each.arg == path for each in self.parameters())


class Scopes:
    """The scopes of one script."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.module = Scope(source, source.tree, None)
        self._scopes: dict[ast.AST, Scope] = {source.tree: self.module}
        self._bind(source.tree.body, self.module)

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._scopes.values())

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost scope around a node."""
        for each in self.source.ancestors(node):
            if each in self._scopes:
                return self._scopes[each]
        return self.module

    def inside(self, node: ast.AST) -> Scope:
        """The scope that a function or class makes."""
        return self._scopes[node]

    def _bind(self, nodes: Sequence[ast.AST], scope: Scope) -> None:
        for node in nodes:
            if isinstance(node, Function | ast.ClassDef):
                scope.bindings[node.name].append(node)
                inner = self._scopes[node] = Scope(self.source, node, scope)
                for parameter in inner.parameters():
                    inner.bindings[parameter.arg].append(parameter)
                self._bind(node.body, inner)
                self._bind([*node.decorator_list], scope)
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    scope.bindings[alias.asname or alias.name.split(".")[0]].append(alias)
            elif isinstance(node, ast.Global):
                for name in node.names:
                    self.module.bindings.setdefault(name, [])
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp | ast.Lambda):
                continue
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                self._bind_target(node, scope)
            self._bind([*ast.iter_child_nodes(node)], scope)

    def _bind_target(self, node: ast.Name | ast.Attribute, scope: Scope) -> None:
        path = path_of(node)
        if path is None:
            return
        owner = scope.method_of if path.startswith("self.") else scope
        if owner is not None:
            owner.bindings[path].append(node)
