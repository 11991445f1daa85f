"""Where a wrapped model is made, and how it gets to the code that uses it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from pilotage.porting.analysis.code.flow import assigned, path_of, reads
from pilotage.porting.analysis.code.iterations import iterations_around
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.insertion import Insertion, in_class, in_function, in_module
from pilotage.porting.analysis.refusal import Refused
from pilotage.porting.project import CallSite, Project
from pilotage.porting.sources.source import Source

__all__ = ["Needs", "Placing", "Site"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """The model, optimizer and other inputs of a wrapped model, under their names in the code that uses it."""

    source: Source
    scope: Scope
    anchor: ast.stmt
    """The statement that uses the wrapped model."""

    paths: tuple[str, ...]
    name: str
    """The preferred name, such as ``training_model``."""

    optimizer: str | None = None
    """The optimizer. Wherever the script recreates it, the model is wrapped again."""


@dataclass(kw_only=True, slots=True)
class Site:
    """Where a wrapped model is made."""

    source: Source
    scope: Scope
    insertion: Insertion
    expressions: dict[str, str]
    """The name of each needed variable here."""

    name: str
    """The name of the wrapped model here."""

    needs: list[Needs] = field(default_factory=list)
    """The code that it is made for."""


class Placing:
    """Plans the sites of one kind of wrapped model."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.sites: list[Site] = []
        self.parameters: dict[Function, tuple[Source, dict[str, str]]] = {}
        """Functions that get the wrapped model as an argument: its name there, and its default."""
        self.arguments: dict[ast.Call, tuple[Source, dict[str, str]]] = {}
        """Calls that pass it on: the name of the parameter, and its argument."""
        self.inlined: dict[Needs, dict[str, str]] = {}
        """Variables of a function that are recreated where the wrapped model is made."""

    def place(self, needs: Needs) -> str:
        """Plan a site; returns the name of the wrapped model in the code that uses it."""
        self.inlined.setdefault(needs, {})
        kept = self._copies()
        try:
            return self._place(needs, needs.source, needs.scope, needs.anchor, {path: path for path in needs.paths}, ())
        except Refused:
            self.sites, self.parameters, self.arguments = kept
            raise

    def _copies(
        self,
    ) -> tuple[
        list[Site], dict[Function, tuple[Source, dict[str, str]]], dict[ast.Call, tuple[Source, dict[str, str]]]
    ]:
        """A copy of the plan so far, to go back to."""
        sites = [replace(each, needs=list(each.needs)) for each in self.sites]
        parameters = {key: (source, dict(names)) for key, (source, names) in self.parameters.items()}
        arguments = {key: (source, dict(names)) for key, (source, names) in self.arguments.items()}
        return sites, parameters, arguments

    def _place(
        self,
        needs: Needs,
        source: Source,
        scope: Scope,
        anchor: ast.stmt,
        expressions: dict[str, str],
        passed: tuple[Function, ...],
    ) -> str:
        paths = [path for path in expressions.values() if _is_path(path)]
        owners = {path: scope.resolve(path) for path in paths}
        of_class = [path for path, owner in owners.items() if path.startswith("self.")]
        own = [path for path, owner in owners.items() if owner is scope and not path.startswith("self.")]
        arguments = [path for path in own if scope.is_parameter(path)]
        optimizer = expressions.get(needs.optimizer or "", "")
        if optimizer in of_class and any(optimizer in assigned(each) for each in scope.body):
            return self._in_function(needs, source, scope, anchor, expressions, paths)
        if of_class:
            self._inline(needs, scope, anchor, [path for path in own if path not in arguments], expressions, passed)
            if arguments:
                raise Refused(source, anchor, "not-placeable", arguments[0])
            return self._in_class(needs, source, scope, anchor, expressions)
        is_made_here = optimizer in set(own) - set(arguments)
        if arguments and not is_made_here and self._must_be_passed(source, scope, anchor):
            locals_ = [path for path in own if path not in arguments]
            self._inline(needs, scope, anchor, locals_, expressions, passed)
            return self._passed(needs, source, scope, anchor, expressions, passed)
        if own:
            return self._in_function(needs, source, scope, anchor, expressions, paths)
        outer = [owner for owner in owners.values() if owner is not None and owner.is_function]
        if outer:
            inner = max(outer, key=_depth)
            return self._place(needs, source, inner, _statement_in(scope, inner), expressions, passed)
        if scope.parent is None:
            return self._in_function(needs, source, scope, anchor, expressions, paths)
        return self._in_module(needs, source, anchor, expressions, paths)

    def _in_function(
        self,
        needs: Needs,
        source: Source,
        scope: Scope,
        anchor: ast.stmt,
        expressions: dict[str, str],
        paths: list[str],
    ) -> str:
        found = in_function(scope, anchor, paths)
        if found is None:
            raise Refused(source, anchor, "not-placeable", paths[0])
        return self._site(needs, source, scope, found[0], expressions)

    def _in_module(
        self,
        needs: Needs,
        source: Source,
        anchor: ast.stmt,
        expressions: dict[str, str],
        paths: list[str],
    ) -> str:
        module = self._project.scopes[source].module
        found = in_module(module, paths)
        if found is None:
            raise Refused(source, anchor, "not-placeable", ", ".join(paths))
        return self._site(needs, source, module, found, expressions)

    def _in_class(
        self, needs: Needs, source: Source, scope: Scope, anchor: ast.stmt, expressions: dict[str, str]
    ) -> str:
        owner = scope.method_of
        assert owner is not None
        attributes = [path for path in expressions.values() if path.startswith("self.")]
        methods = self._project.methods(source, owner)
        stored = [path for path in attributes if path.removeprefix("self.") not in methods]
        found = in_class(self._project, source, owner, stored)
        if found is None:
            raise Refused(source, anchor, "not-placeable", attributes[0])
        if found.source is not source:
            raise Refused(source, anchor, "not-placeable", attributes[0])
        return self._site(needs, source, owner, found, expressions)

    def _passed(
        self,
        needs: Needs,
        source: Source,
        scope: Scope,
        anchor: ast.stmt,
        expressions: dict[str, str],
        passed: tuple[Function, ...],
    ) -> str:
        """Make every caller create the wrapped model and pass it on."""
        function = scope.node
        assert isinstance(function, Function)
        if function in passed:
            raise Refused(source, anchor, "not-placeable", function.name)
        name = self._free_name(scope, needs.name)
        default = ""
        for call in self._project.callers(function):
            if self._is_idle(needs, call, function, scope, expressions):
                default = "=None"
                continue
            given: dict[str, str] = {}
            for path, expression in expressions.items():
                if not _is_path(expression) or scope.resolve(expression) is not scope:
                    given[path] = expression
                    continue
                argument = call.argument(function, expression) or call.is_left_out(function, expression)
                if argument is None:
                    raise Refused(source, anchor, "not-placeable", expression)
                given[path] = path_of(argument) or call.source.segment(argument)
            statement = call.source.statement(call.call)
            made = self._place(needs, call.source, call.scope, statement, given, (*passed, function))
            self.arguments.setdefault(call.call, (call.source, {}))[1][name] = made
        self.parameters.setdefault(function, (source, {}))[1][name] = default
        return name

    def _is_idle(
        self, needs: Needs, call: CallSite, function: Function, scope: Scope, expressions: dict[str, str]
    ) -> bool:
        """Whether a call gives None for the optimizer, or for the model that is evaluated, so that it makes no step."""
        for path, expression in expressions.items():
            if needs.optimizer not in (None, path):
                continue
            if _is_path(expression) and scope.resolve(expression) is scope:
                given = call.argument(function, expression) or call.is_left_out(function, expression)
                if isinstance(given, ast.Constant) and given.value is None:
                    return True
        return False

    def _must_be_passed(self, source: Source, scope: Scope, anchor: ast.stmt) -> bool:
        """Whether a function is called more than once, so that it must not make the wrapped model itself."""
        function = scope.node
        assert isinstance(function, Function)
        callers = self._project.callers(function)
        if not callers:
            if not any(iterations_around(source, anchor, function)):
                raise Refused(source, anchor, "not-placeable", function.name)
            return False
        return len(callers) > 1 or self._is_repeated(function, frozenset())

    def _is_repeated(self, function: Function, seen: frozenset[Function]) -> bool:
        callers = self._project.callers(function)
        for call in callers:
            if any(iterations_around(call.source, call.call, call.scope.node)):
                return True
            inner = call.scope.node
            if isinstance(inner, Function) and inner not in seen and self._is_repeated(inner, seen | {function}):
                return True
        return False

    def _inline(
        self,
        needs: Needs,
        scope: Scope,
        anchor: ast.stmt,
        paths: list[str],
        expressions: dict[str, str],
        passed: tuple[Function, ...],
    ) -> None:
        """Note variables that the wrapped model can make for itself, because they depend on nothing local."""
        for path in paths:
            bindings = scope.bindings.get(path, [])
            parent = scope.source.parents.get(bindings[0]) if len(bindings) == 1 else None
            value = parent.value if isinstance(parent, ast.Assign) else None
            is_free = value is not None and all(
                (owner := scope.resolve(each)) is None or owner.parent is None for each in reads(value)
            )
            if passed or value is None or not is_free:
                raise Refused(scope.source, anchor, "not-placeable", path)
            self.inlined[needs][path] = scope.source.segment(value)
            for key in [key for key, expression in expressions.items() if expression == path]:
                del expressions[key]

    def _site(
        self, needs: Needs, source: Source, scope: Scope, insertion: Insertion, expressions: dict[str, str]
    ) -> str:
        for each in self.sites:
            is_same = list(each.expressions.values()) == list(expressions.values())
            if (
                each.scope is scope
                and is_same
                and each.needs[0].name == needs.name
                and _same_maker(each.needs[0], needs)
            ):
                each.needs.append(needs)
                if insertion.offset < each.insertion.offset:
                    each.insertion = insertion
                return each.name
        name = f"self.{needs.name}" if scope.is_class else needs.name
        name = self._free_name(scope, name)
        self.sites.append(
            Site(source=source, scope=scope, insertion=insertion, expressions=expressions, name=name, needs=[needs])
        )
        return name

    def _free_name(self, scope: Scope, name: str) -> str:
        taken = {each.name for each in self.sites if each.scope is scope}
        taken |= {path for path in (name, *(f"{name}_{i}" for i in range(2, 9))) if scope.resolve(path) is not None}
        if scope.is_class:
            taken = {each.name for each in self.sites if each.scope is scope} | {
                path for path in scope.bindings if path.startswith("self.")
            }
        number, free = 2, name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free


def _same_maker(left: Needs, right: Needs) -> bool:
    """Whether two uses can share a wrapped model: evaluations can, steps with different losses cannot."""
    return left.name == "inference_model" or left.anchor is right.anchor


def _is_path(text: str) -> bool:
    return text.removeprefix("self.").isidentifier()


def _depth(scope: Scope) -> int:
    depth = 0
    while scope.parent is not None:
        scope, depth = scope.parent, depth + 1
    return depth


def _statement_in(scope: Scope, outer: Scope) -> ast.stmt:
    """The statement of an outer function that the inner one is part of."""
    while scope.parent is not None and scope.parent is not outer:
        scope = scope.parent
    assert isinstance(scope.node, ast.stmt)
    return scope.node
