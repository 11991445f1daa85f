"""Finds the place for a new statement that needs certain variables."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pilotage.porting.analysis.code.flow import assigned, is_super, path_of
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.training_calls import walk_statements
from pilotage.porting.project import Project
from pilotage.porting.sources.layout import indentation, lines_of
from pilotage.porting.sources.source import Source

__all__ = ["Insertion", "after_statement", "before_statement", "in_class", "in_function", "in_module"]

_INHERITED = "super().__init__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Insertion:
    """A place between two statements."""

    source: Source
    offset: int
    indent: str


def before_statement(source: Source, statement: ast.stmt) -> Insertion:
    """Right before a statement and its comments."""
    start, _ = lines_of(source, statement, with_comments=True)
    return Insertion(source=source, offset=start, indent=indentation(source, statement))


def after_statement(source: Source, statement: ast.stmt) -> Insertion:
    """Right after a statement."""
    _, end = lines_of(source, statement)
    return Insertion(source=source, offset=end, indent=indentation(source, statement))


def in_function(scope: Scope, anchor: ast.stmt, paths: list[str]) -> tuple[Insertion, ast.stmt] | None:
    """Before the outermost statement around an anchor at which the variables are bound; None if that is inside of the
    innermost loop."""
    source = scope.source
    chain = _chain(scope, anchor)
    level = 0
    for path in paths:
        for binding in _bindings_in(scope, path):
            if isinstance(binding, ast.arg | ast.alias) or source.place(binding) >= source.place(anchor):
                continue
            level = max(level, _level(source, chain, source.statement(binding)))
    statement = chain[min(level, len(chain) - 1)]
    loops = [each for each in chain if isinstance(each, ast.For | ast.While)]
    if loops and statement is not loops[-1] and loops[-1] in source.ancestors(statement):
        return None
    return before_statement(source, statement), statement


def _bindings_in(scope: Scope, path: str) -> list[ast.AST]:
    """The nodes that bind a variable in a function; bindings of an attribute in other methods do not count."""
    if not path.startswith("self."):
        return list(scope.bindings.get(path, ()))
    owner = scope.method_of
    bindings = owner.bindings.get(path, ()) if owner is not None else ()
    return [each for each in bindings if scope.node in scope.source.ancestors(each)]


def in_module(scope: Scope, paths: list[str]) -> Insertion | None:
    """After the last statement of a module that binds one of the variables."""
    source = scope.source
    bindings = [
        each
        for path in paths
        for each in scope.bindings.get(path, ())
        if not isinstance(each, ast.alias | ast.FunctionDef | ast.ClassDef)
    ]
    if not bindings:
        return None
    last = max(bindings, key=source.place)
    return after_statement(source, _whole(source, source.statement(last), paths))


def in_class(project: Project, source: Source, scope: Scope, paths: list[str]) -> Insertion | None:
    """After the statement of a method that makes the last of the attributes."""
    methods = {**project.methods(source, scope), **_inherited_starts(project, source, scope)}
    reach = {name: _reach(project, methods, name, frozenset()) for name in methods}
    wanted = set(paths)
    complete = [name for name, found in reach.items() if wanted <= found and not name.startswith(_INHERITED)]
    nearest = [
        name
        for name in complete
        if not any(called in complete and called != name for called in _called_methods(methods[name][1]))
    ]
    chosen = nearest[0] if nearest else next((name for name in methods if paths[-1] in _direct(methods[name][1])), None)
    if chosen is None:
        return None
    place, method = methods[chosen]
    last: ast.stmt | None = None
    for statement in walk_statements(method.body):
        calls = _calls_in(statement)
        given = assigned(statement) if not isinstance(statement, ast.If | ast.With | ast.For | ast.Try) else set()
        if (given | {each for name in calls for each in reach.get(name, ())}) & wanted:
            last = statement
    return None if last is None else after_statement(place, _whole(place, last, paths))


def _chain(scope: Scope, anchor: ast.stmt) -> list[ast.stmt]:
    """The statements around an anchor, from the body of the scope to the anchor itself."""
    found = [anchor]
    for each in scope.source.ancestors(anchor):
        if each is scope.node:
            break
        if isinstance(each, ast.stmt):
            found.append(each)
    return list(reversed(found))


def _level(source: Source, chain: list[ast.stmt], statement: ast.stmt) -> int:
    around = {statement, *source.ancestors(statement)}
    for level, each in enumerate(chain):
        if each not in around:
            return level
    return len(chain)


def _whole(source: Source, statement: ast.stmt, paths: list[str]) -> ast.stmt:
    """The outermost condition around a statement whose other branch binds one of the variables too."""
    best = statement
    for each in source.ancestors(statement):
        if not isinstance(each, ast.If | ast.Try | ast.With):
            break
        branches = [getattr(each, "body", []), getattr(each, "orelse", [])]
        binding = [branch for branch in branches if set(paths) & {path for node in branch for path in assigned(node)}]
        if isinstance(each, ast.With) or len(binding) > 1:
            best = each
    return best


def _direct(method: Scope) -> set[str]:
    return {path for node in method.body for path in assigned(node) if path.startswith("self.")}


def _calls_in(statement: ast.stmt) -> list[str]:
    """The methods of ``self`` that a statement itself calls."""
    if isinstance(statement, Function | ast.ClassDef | ast.If | ast.For | ast.While | ast.With | ast.Try):
        return []
    called = [each.func for each in ast.walk(statement) if isinstance(each, ast.Call)]
    attributes = [each for each in called if isinstance(each, ast.Attribute)]
    starts = [_INHERITED for each in attributes if each.attr == "__init__" and is_super(each.value)]
    return [*starts, *(each.attr for each in attributes if path_of(each) is not None)]


def _inherited_starts(project: Project, source: Source, scope: Scope) -> dict[str, tuple[Source, Scope]]:
    """The ``__init__`` of base classes that a class overrides: one call of ``super()`` away, two, and so on."""
    starts = [
        (owner, project.scopes[owner].inside(node))
        for owner, each in project.classes(source, scope)
        for node in each.body
        if isinstance(node, Function) and node.name == "__init__"
    ]
    return {_INHERITED * number: each for number, each in enumerate(starts[1:], 1)}


def _called_methods(method: Scope) -> list[str]:
    return [name for statement in walk_statements(method.body) for name in _calls_in(statement)]


def _reach(
    project: Project, methods: dict[str, tuple[Source, Scope]], name: str, seen: frozenset[str]
) -> frozenset[str]:
    """The attributes that a method sets, itself or by the methods that it calls."""
    if name in seen or name not in methods:
        return frozenset()
    method = methods[name][1]
    found = set(_direct(method))
    above = _INHERITED * (name.count(_INHERITED) + 1)
    for called in _called_methods(method):
        found |= _reach(project, methods, above if called == _INHERITED else called, seen | {name})
    return frozenset(found)
