"""Finds code that names a device: moves of tensors and modules, and variables that hold devices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.project import Project
from pilotage.porting.sources.edits import Edit
from pilotage.porting.sources.source import Source

__all__ = ["device_arguments", "is_device", "moves", "without_moves"]

_NAMED_LIKE_A_DEVICE = re.compile(r"(^|[._])(device|dev|gpu|cuda|rank|local_rank|gpu_id|device_id)s?$", re.IGNORECASE)
_DEVICE_TEXT = re.compile(r"(cuda|cpu|mps|xpu|hpu)(:\d+)?$")


def is_device(project: Project, source: Source, node: ast.expr) -> bool:
    """Whether an expression is a device."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _DEVICE_TEXT.match(node.value) is not None
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
        return isinstance(first, ast.Constant) and str(first.value).startswith("cuda")
    if isinstance(node, ast.IfExp):
        return is_device(project, source, node.body)
    if isinstance(node, ast.Call):
        return project.names[source].calls(node) == "torch.device"
    if isinstance(node, ast.Name | ast.Attribute):
        if project.names[source].dotted(node) is not None and path_of(node) is None:
            return False
        if _NAMED_LIKE_A_DEVICE.search(ast.unparse(node)):
            return True
        return any(
            project.names[each.source].calls(each.node) == "torch.device" for each in origins(project, source, node)
        )
    return False


def moves(project: Project, source: Source, node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Every call inside of a node that moves something to a device, with its replacement."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            left = _without_device(project, source, each)
            if left is not None:
                yield each, left


def device_arguments(project: Project, source: Source, node: ast.AST) -> set[ast.AST]:
    """The device arguments of the moves inside of a node, which are removed with them."""
    return {
        each
        for call, _ in moves(project, source, node)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        if is_device(project, source, argument)
        for each in ast.walk(argument)
    }


def without_moves(project: Project, source: Source, node: ast.AST, rule: str) -> list[Edit]:
    """Edits that remove the moves from a node and keep the moved objects."""
    edits = []
    for call, left in moves(project, source, node):
        assert isinstance(call.func, ast.Attribute)
        _, end = source.span(call.func.value)
        edits.append(Edit(start=end, end=source.span(call)[1], text=left, rule=rule))
    return edits


def _without_device(project: Project, source: Source, call: ast.Call) -> str | None:
    """The text that replaces the call after the moved object; None if the call moves nothing."""
    assert isinstance(call.func, ast.Attribute)
    if project.names[source].dotted(call.func) is not None:
        return None
    if call.func.attr in ("cuda", "pin_memory", "xpu") and not isinstance(call.func.value, ast.Constant):
        return ""
    if call.func.attr == "share_memory" or call.func.attr != "to":
        return None
    kept = [each for each in call.args if not is_device(project, source, each)]
    named = [
        each
        for each in call.keywords
        if each.arg not in ("device", "non_blocking", "copy") and not is_device(project, source, each.value)
    ]
    moved = len(kept) < len(call.args) or any(each.arg == "device" for each in call.keywords)
    if not moved:
        return None
    if any(isinstance(each, ast.Constant) and isinstance(each.value, bool) for each in kept):
        kept = [each for each in kept if not isinstance(each, ast.Constant)]
    given = [*(source.segment(each) for each in kept), *(source.segment(each) for each in named)]
    return f".to({', '.join(given)})" if given else ""
