"""The scripts that are ported together; resolves names across files."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilotage.porting.analysis.code.flow import is_super, path_of
from pilotage.porting.analysis.code.names import Names
from pilotage.porting.analysis.code.scopes import Function, Scope, Scopes
from pilotage.porting.sources.source import Source

__all__ = ["CallSite", "Project"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallSite:
    """A call of a function of the project."""

    source: Source
    scope: Scope
    call: ast.Call

    def argument(self, function: Function, name: str) -> ast.expr | None:
        """The argument for a parameter, or its default; None if it cannot be known."""
        if any(isinstance(each, ast.Starred) for each in self.call.args) or any(
            each.arg is None for each in self.call.keywords
        ):
            return None
        for keyword in self.call.keywords:
            if keyword.arg == name:
                return keyword.value
        positional = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if name in positional:
            is_bound = positional and positional[0] == "self"
            index = positional.index(name) - (1 if is_bound else 0)
            if 0 <= index < len(self.call.args):
                return self.call.args[index]
        return None

    def is_left_out(self, function: Function, name: str) -> ast.expr | None:
        """The default of a parameter, if the call gives nothing for it."""
        has_stars = any(isinstance(each, ast.Starred) for each in self.call.args) or any(
            each.arg is None for each in self.call.keywords
        )
        if has_stars or self.argument(function, name) is not None:
            return None
        given = function.args
        positional = [*given.posonlyargs, *given.args]
        for parameter, default in zip(reversed(positional), reversed(given.defaults), strict=False):
            if parameter.arg == name:
                return default
        for parameter, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            if parameter.arg == name:
                return value
        return None


class Project:
    """All scripts of one port."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self.scopes = {source: Scopes(source) for source in sources}
        self.names = {source: Names(source) for source in sources}
        self._modules: dict[str, Source] = {}
        for source in sources:
            for name in _module_names(source.path):
                self._modules.setdefault(name, source)
        self._callers: defaultdict[Function, list[CallSite]] | None = None
        self._instances: defaultdict[Scope, list[CallSite]] | None = None
        self._resolving: set[ast.AST] = set()
        self.known_origins: dict[ast.AST, list[Any]] = {}
        """The results of `origins`."""

    def scope_of(self, source: Source, node: ast.AST) -> Scope:
        """The innermost scope around a node."""
        return self.scopes[source].scope_of(node)

    def module(self, source: Source, dotted: str) -> Source | None:
        """The script of the project that an imported module is."""
        if dotted.startswith("."):
            level = len(dotted) - len(dotted.lstrip("."))
            folder = source.path.parent
            for _ in range(level - 1):
                folder = folder.parent
            place = folder.joinpath(*[part for part in dotted.lstrip(".").split(".") if part])
            wanted = {place.with_suffix(".py"), place / "__init__.py"}
            return next((each for each in self.sources if each.path in wanted), None)
        return self._modules.get(dotted)

    def definition(self, source: Source, dotted: str) -> tuple[Source, Scope] | None:
        """The function or class of the project that an imported name is."""
        module, _, name = dotted.rpartition(".")
        if not module.strip(".") and dotted.startswith("."):
            module = dotted[: len(dotted) - len(dotted.lstrip("."))]
        found = self.module(source, module) if module else None
        return None if found is None else self._defined(found, name)

    def imports(self, source: Source) -> Iterator[Source]:
        """The scripts of the project that a script imports."""
        for dotted in self.names[source].imported.values():
            for name in (dotted, dotted.rpartition(".")[0]):
                found = self.module(source, name) if name else None
                if found is not None and found is not source:
                    yield found

    def callee(self, source: Source, call: ast.Call) -> tuple[Source, Scope] | None:
        """The function or class of the project that a call calls."""
        scope = self.scope_of(source, call)
        dotted = self.names[source].dotted(call.func)
        if isinstance(call.func, ast.Name):
            owner = scope.resolve(call.func.id)
            for node in owner.bindings.get(call.func.id, ()) if owner is not None else ():
                if isinstance(node, Function | ast.ClassDef):
                    return source, self.scopes[source].inside(node)
        if dotted is not None:
            return self.definition(source, dotted)
        if isinstance(call.func, ast.Attribute):
            return self._method(source, scope, call.func)
        return None

    def callers(self, function: Function) -> list[CallSite]:
        """Every call of a function, of a method, or of the class whose ``__init__`` it is."""
        if self._callers is None:
            self._callers = defaultdict(list)
            for source in self.sources:
                for node in source.nodes:
                    if isinstance(node, ast.Call):
                        self._note_call(source, node)
        return self._callers[function]

    def instances(self, scope: Scope) -> list[CallSite]:
        """Every call that makes an object of a class, or of one that is derived from it."""
        if self._instances is None:
            self._instances = defaultdict(list)
            for source in self.sources:
                for node in source.nodes:
                    known = self.callee(source, node) if isinstance(node, ast.Call) else None
                    if known is not None and known[1].is_class and isinstance(node, ast.Call):
                        made = CallSite(source=source, scope=self.scope_of(source, node), call=node)
                        for _, each in self.classes(*known):
                            self._instances[each].append(made)
        return self._instances[scope]

    def classes(self, source: Source, scope: Scope) -> list[tuple[Source, Scope]]:
        """A class and its base classes in the project, the nearest first."""
        found = [(source, scope)]
        assert isinstance(scope.node, ast.ClassDef)
        for base in scope.node.bases:
            known = None
            if isinstance(base, ast.Name):
                known = self._defined(source, base.id)
            dotted = self.names[source].dotted(base)
            if known is None and dotted is not None:
                known = self.definition(source, dotted)
            if known is not None and known[1].is_class and known[1] is not scope:
                found += self.classes(*known)
        return found

    def methods(self, source: Source, scope: Scope) -> dict[str, tuple[Source, Scope]]:
        """The methods of a class with those of its base classes in the project."""
        found: dict[str, tuple[Source, Scope]] = {}
        for owner, each in self.classes(source, scope):
            for node in each.body:
                if isinstance(node, Function):
                    found.setdefault(node.name, (owner, self.scopes[owner].inside(node)))
        return found

    def _note_call(self, source: Source, call: ast.Call) -> None:
        assert self._callers is not None
        known = self.callee(source, call)
        if known is None:
            return
        node = known[1].node
        if isinstance(node, ast.ClassDef):
            start = self.methods(*known).get("__init__")
            node = start[1].node if start is not None else node
        if isinstance(node, Function):
            self._callers[node].append(CallSite(source=source, scope=self.scope_of(source, call), call=call))

    def _method(self, source: Source, scope: Scope, func: ast.Attribute) -> tuple[Source, Scope] | None:
        if is_super(func.value) and scope.method_of is not None:
            return self._inherited(source, scope.method_of, func.attr)
        if isinstance(func.value, ast.Name) and func.value.id == "self" and scope.method_of is not None:
            return self.methods(source, scope.method_of).get(func.attr)
        path = path_of(func.value)
        owner = scope.resolve(path) if path is not None else None
        for node in owner.bindings.get(path or "", ()) if owner is not None else ():
            made = self._made_by(owner.source, node) if owner is not None else None
            if made is not None and made[1].is_class:
                return self.methods(*made).get(func.attr)
        return None

    def _inherited(self, source: Source, owner: Scope, name: str) -> tuple[Source, Scope] | None:
        """The method of a base class."""
        for place, each in self.classes(source, owner)[1:]:
            for node in each.body:
                if isinstance(node, Function) and node.name == name:
                    return place, self.scopes[place].inside(node)
        return None

    def _made_by(self, source: Source, node: ast.AST) -> tuple[Source, Scope] | None:
        """The class whose instance is assigned to a variable."""
        parent = source.parents.get(node)
        if not isinstance(parent, ast.Assign) or not isinstance(parent.value, ast.Call) or parent in self._resolving:
            return None
        self._resolving.add(parent)
        try:
            return self.callee(source, parent.value)
        finally:
            self._resolving.discard(parent)

    def _defined(self, source: Source, name: str) -> tuple[Source, Scope] | None:
        scopes = self.scopes[source]
        for node in scopes.module.bindings.get(name, ()):
            if isinstance(node, Function | ast.ClassDef):
                return source, scopes.inside(node)
            if isinstance(node, ast.alias):
                dotted = self.names[source].imported.get(name, "")
                known = self.module(source, dotted.rpartition(".")[0]) if dotted else None
                if known is not None and known is not source:
                    return self._defined(known, dotted.rpartition(".")[2])
        return None


def _module_names(path: Path) -> Iterator[str]:
    """The dotted names under which a file may be imported."""
    parts = path.absolute().with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    for count in range(1, min(len(parts), 6)):
        yield ".".join(parts[-count:])
