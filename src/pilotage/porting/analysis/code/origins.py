"""Finds where a value comes from, through variables, arguments, attributes and functions of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["Origin", "origins"]

_SAME_OBJECT = {"to", "cuda", "cpu", "train", "eval", "float", "half", "double", "bfloat16", "requires_grad_", "xpu"}
"""Methods of a module that return the module."""
_AROUND = {
    "enumerate",
    "iter",
    "list",
    "tqdm",
    "track",
    "torch.compile",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.std.tqdm",
    "rich.progress.track",
    "itertools.islice",
}
"""Functions that return their first argument, possibly wrapped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """An expression, argument, definition or import that produces a value."""

    source: Source
    scope: Scope
    node: ast.AST


def origins(project: Project, source: Source, node: ast.AST) -> list[Origin]:
    """Everything that may produce the value of an expression, each once."""
    known = project.known_origins.get(node)
    if known is None:
        found: dict[ast.AST, Origin] = {}
        trace = _Trace(project, set())
        for each in trace.value(source, project.scope_of(source, node), node):
            found.setdefault(each.node, each)
        known = project.known_origins[node] = list(found.values())
    return list(known)


class _Trace:
    """Follows values backward; each binding once, so that ``model = model.to(device)`` ends."""

    def __init__(self, project: Project, seen: set[ast.AST]) -> None:
        self._project = project
        self._seen = seen

    def value(self, source: Source, scope: Scope, node: ast.AST) -> Iterator[Origin]:
        """The origins of the value of an expression."""
        if path_of(node) is not None:
            yield from self._variable(source, scope, node)
        elif isinstance(node, ast.IfExp):
            yield from self.value(source, scope, node.body)
            yield from self.value(source, scope, node.orelse)
        elif isinstance(node, ast.Subscript) and _is_keyword_of(scope, node):
            yield from self._keyword(source, scope, node)
        elif isinstance(node, ast.Subscript):
            for each in self.value(source, scope, node.value):
                yield from self._members(each, Origin(source=source, scope=scope, node=node))
        elif isinstance(node, ast.Call):
            yield from self._call(source, scope, node)
        else:
            yield Origin(source=source, scope=scope, node=node)

    def _variable(self, source: Source, scope: Scope, node: ast.AST) -> Iterator[Origin]:
        path = path_of(node) or ""
        owner = scope.resolve(path)
        owners = [(source, owner)] if owner is not None else []
        if owner is not None and owner.is_class:
            owners = self._project.classes(source, owner)
        is_bound = False
        for place, each in owners:
            for binding in list(each.bindings.get(path, ())):
                is_bound = True
                if binding not in self._seen:
                    self._seen.add(binding)
                    yield from self._binding(place, each, binding)
        if not is_bound:
            yield Origin(source=source, scope=scope, node=node)

    def _binding(self, source: Source, owner: Scope, binding: ast.AST) -> Iterator[Origin]:
        if isinstance(binding, ast.arg):
            yield from self._argument(source, owner, binding)
            return
        scope = self._project.scope_of(source, binding)
        parent = source.parents.get(binding)
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is not None:
            yield from self.value(source, scope, parent.value)
        elif isinstance(parent, ast.Tuple | ast.List) and isinstance(source.parents.get(parent), ast.Assign):
            assign = source.parents[parent]
            assert isinstance(assign, ast.Assign)
            index = next(i for i, each in enumerate(parent.elts) if each is binding)
            yield from self._element(source, scope, assign.value, index)
        else:
            yield Origin(source=source, scope=scope, node=binding)

    def _argument(self, source: Source, owner: Scope, binding: ast.arg) -> Iterator[Origin]:
        assert isinstance(owner.node, Function)
        is_known = False
        if binding.arg == "self" and owner.parent is not None and owner.parent.is_class:
            for made in self._project.instances(owner.parent):
                is_known = True
                yield Origin(source=made.source, scope=made.scope, node=made.call)
        for site in self._project.callers(owner.node):
            given = site.argument(owner.node, binding.arg)
            default = site.is_left_out(owner.node, binding.arg)
            if given is not None:
                is_known = True
                yield from self.value(site.source, site.scope, given)
            elif default is not None:
                is_known = True
                yield from self.value(source, owner.parent or owner, default)
        if not is_known:
            yield Origin(source=source, scope=owner, node=binding)

    def _keyword(self, source: Source, scope: Scope, node: ast.Subscript) -> Iterator[Origin]:
        """What callers give for ``kwargs["name"]``."""
        assert isinstance(scope.node, Function)
        assert isinstance(node.slice, ast.Constant)
        is_known = False
        for site in self._project.callers(scope.node):
            for keyword in site.call.keywords:
                if keyword.arg == node.slice.value:
                    is_known = True
                    yield from self.value(site.source, site.scope, keyword.value)
        if not is_known:
            yield Origin(source=source, scope=scope, node=node)

    def _element(self, source: Source, scope: Scope, value: ast.expr, index: int) -> Iterator[Origin]:
        """One element of an unpacked value."""
        if isinstance(value, ast.Tuple | ast.List):
            yield from self.value(source, scope, value.elts[min(index, len(value.elts) - 1)])
            return
        known = self._project.callee(source, value) if isinstance(value, ast.Call) else None
        for place, function, returned in _returned(self._project, known):
            if isinstance(returned, ast.Tuple) and index < len(returned.elts):
                yield from self.value(place, function, returned.elts[index])
                return
        yield Origin(source=source, scope=scope, node=value)

    def _call(self, source: Source, scope: Scope, node: ast.Call) -> Iterator[Origin]:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_OBJECT:
            yield from self.value(source, scope, node.func.value)
            return
        name = self._project.names[source].dotted(node.func)
        if name is None and isinstance(node.func, ast.Name) and scope.resolve(node.func.id) is None:
            name = node.func.id
        if name in _AROUND and node.args:
            yield from self.value(source, scope, node.args[0])
            return
        is_known = False
        for known in self._callees(source, scope, node):
            for place, function, returned in _returned(self._project, known):
                is_known = True
                if returned not in self._seen:
                    self._seen.add(returned)
                    yield from self.value(place, function, returned)
        if not is_known:
            yield Origin(source=source, scope=scope, node=node)

    def _callees(self, source: Source, scope: Scope, node: ast.Call) -> list[tuple[Source, Scope]]:
        """The functions that a call may call; a method is looked for in the classes of its object."""
        known = self._project.callee(source, node)
        if known is not None or not isinstance(node.func, ast.Attribute):
            return [] if known is None else [known]
        found: dict[Scope, Source] = {}
        for made in _Trace(self._project, set(self._seen)).value(source, scope, node.func.value):
            kind = self._project.callee(made.source, made.node) if isinstance(made.node, ast.Call) else None
            method = self._project.methods(*kind).get(node.func.attr) if kind is not None and kind[1].is_class else None
            if method is not None:
                found[method[1]] = method[0]
        return [(place, function) for function, place in found.items()]

    def _members(self, origin: Origin, part: Origin) -> Iterator[Origin]:
        """The values of a dictionary or list; the part itself if it is a part of something else."""
        node = origin.node
        values: list[ast.expr] = []
        if isinstance(node, ast.Dict):
            values = list(node.values)
        elif isinstance(node, ast.DictComp):
            values = [node.value]
        elif isinstance(node, ast.List | ast.Tuple):
            values = list(node.elts)
        if not values:
            yield part
        for value in values:
            yield from self.value(origin.source, origin.scope, value)


def _is_keyword_of(scope: Scope, node: ast.Subscript) -> bool:
    """Whether an expression is ``kwargs["name"]`` of the function that it is in."""
    given = scope.node.args.kwarg if isinstance(scope.node, Function) else None
    is_text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    return given is not None and is_text and isinstance(node.value, ast.Name) and node.value.id == given.arg


def _returned(project: Project, known: tuple[Source, Scope] | None) -> Iterator[tuple[Source, Scope, ast.expr]]:
    """What a function of the project returns."""
    if known is None or not known[1].is_function:
        return
    source, scope = known
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Return) and node.value is not None and project.scope_of(source, node) is scope:
            yield source, scope, node.value
