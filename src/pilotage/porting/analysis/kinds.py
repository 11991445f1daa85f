"""Finds the role of an expression in training: optimizer, scheduler, scaler, loader or module."""

from __future__ import annotations

import ast
import re
from enum import Enum

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import Origin, origins
from pilotage.porting.analysis.code.scopes import Function
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["LOADER", "Kind", "is_module_class", "kind_of", "torch_name"]

LOADER = "torch.utils.data.DataLoader"


class Kind(Enum):
    """A role in training."""

    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "gradient scaler"
    LOADER = "loader"
    MODULE = "module"
    FUNCTION = "function"
    OTHER = "other"


_BY_NAME = (
    (re.compile(r"sched|(^|_)lr_s|warmup", re.IGNORECASE), Kind.SCHEDULER),
    (re.compile(r"optim|(^|[._])opt($|_|[dgDG]$)", re.IGNORECASE), Kind.OPTIMIZER),
    (re.compile(r"scaler", re.IGNORECASE), Kind.SCALER),
    (re.compile(r"loader|(^|_)dl$|batches", re.IGNORECASE), Kind.LOADER),
    (re.compile(r"model|(^|[._])net(work)?($|_)", re.IGNORECASE), Kind.MODULE),
)


def kind_of(project: Project, source: Source, node: ast.AST) -> Kind:
    """The kind of a variable or expression, by its origin, or by its name if that is not known."""
    found = origins(project, source, node)
    kinds = {_kind_of_origin(project, each) for each in found} - {None}
    if len(kinds) == 1:
        (kind,) = kinds
        assert kind is not None
        return kind
    if kinds:
        return Kind.OTHER
    path = path_of(node)
    for pattern, kind in _BY_NAME if path is not None else ():
        if pattern.search(path or ""):
            return kind
    return Kind.OTHER


def torch_name(project: Project, origin: Origin) -> str | None:
    """The dotted name of the function that an origin calls.

    The function may be an argument, such as ``opt_func=torch.optim.SGD``.
    """
    name = project.names[origin.source].calls(origin.node)
    if name is not None or not isinstance(origin.node, ast.Call) or not isinstance(origin.node.func, ast.Name):
        return name
    if not origin.scope.is_parameter(origin.node.func.id):
        return None
    given = origins(project, origin.source, origin.node.func)
    names = {project.names[each.source].dotted(each.node) for each in given if isinstance(each.node, ast.expr)}
    return names.pop() if len(names) == 1 else None


def is_module_class(project: Project, source: Source, node: ast.ClassDef) -> bool:
    """Whether a class is a module of torch, as far as the analysis can tell."""
    for place, scope in project.classes(source, project.scopes[source].inside(node)):
        assert isinstance(scope.node, ast.ClassDef)
        for base in scope.node.bases:
            name = project.names[place].dotted(base) or ""
            if name.startswith(("torch.nn.", "torchvision.models", "transformers.", "timm.", "pytorch_lightning.")):
                return True
            if name.endswith("Module") or (isinstance(base, ast.Attribute) and base.attr == "Module"):
                return True
    return False


def _kind_of_origin(project: Project, origin: Origin) -> Kind | None:
    node = origin.node
    if isinstance(node, Function | ast.Lambda):
        return Kind.FUNCTION
    if isinstance(node, ast.alias):
        return Kind.FUNCTION
    if not isinstance(node, ast.Call):
        return None
    name = torch_name(project, origin)
    if name is not None and (kind := _kind_of_name(name)) is not None:
        return kind
    known = project.callee(origin.source, node)
    if known is None:
        return None
    place, scope = known
    if not isinstance(scope.node, ast.ClassDef):
        return None
    if is_module_class(project, place, scope.node):
        return Kind.MODULE
    for owner, each in project.classes(place, scope):
        assert isinstance(each.node, ast.ClassDef)
        for base in each.node.bases:
            kind = _kind_of_name(project.names[owner].dotted(base) or "")
            if kind is not None:
                return kind
    return Kind.OTHER


def _kind_of_name(name: str) -> Kind | None:
    last = name.rpartition(".")[2]
    if name.startswith(("torch.optim.lr_scheduler", "transformers.get_")) or "scheduler" in name.lower():
        return Kind.SCHEDULER
    if name.startswith(("torch.optim", "apex.optimizers", "bitsandbytes.optim")):
        return Kind.OPTIMIZER
    if last == "GradScaler":
        return Kind.SCALER
    if name == LOADER:
        return Kind.LOADER
    if name.startswith("torch.nn.functional"):
        return Kind.FUNCTION
    if name.startswith(("torch.nn.", "torchvision.models.", "timm.")) and not name.startswith("torch.nn.utils"):
        return Kind.MODULE
    return None
