"""Whether the number of samples of a loader is known to be a multiple of its batch size."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.loaders import Loader
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["drop_last_of", "leaves_a_remainder"]

_OF_A_SIZE = {"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"}


def leaves_a_remainder(project: Project, loader: Loader) -> bool | None:
    """Whether the last batch is incomplete; None if that is not known."""
    given = _argument(loader.call, 1, "batch_size")
    size = _number(project, loader.source, given) if given is not None else 1
    dataset = _argument(loader.call, 0, "dataset")
    length = _length(project, loader.source, dataset) if dataset is not None else None
    return None if length is None or not size else length % size != 0


def drop_last_of(project: Project, loader: Loader) -> tuple[ast.keyword | None, bool | None]:
    """The argument ``drop_last``, and its value if it is known; also one that a dictionary gives."""
    for keyword in loader.call.keywords:
        if keyword.arg == "drop_last":
            value = keyword.value
            return keyword, bool(value.value) if isinstance(value, ast.Constant) else None
        if keyword.arg is None:
            for origin in origins(project, loader.source, keyword.value):
                keys = origin.node.keys if isinstance(origin.node, ast.Dict) else []
                if any(isinstance(each, ast.Constant) and each.value == "drop_last" for each in keys):
                    return keyword, None
    return None, False


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if len(call.args) > position else None


def _number(project: Project, source: Source, node: ast.expr | None) -> int | None:
    if node is None:
        return None
    found = {each.node.value for each in origins(project, source, node) if isinstance(each.node, ast.Constant)}
    value = found.pop() if len(found) == 1 else None
    return value if isinstance(value, int) else None


def _length(project: Project, source: Source, node: ast.expr) -> int | None:
    """The number of samples of a data set or tensor, if it is written in the script."""
    lengths = set()
    for origin in origins(project, source, node):
        if not isinstance(origin.node, ast.Call) or not origin.node.args:
            return None
        name = project.names[origin.source].calls(origin.node)
        first = origin.node.args[0]
        if name == "torch.utils.data.TensorDataset":
            lengths.add(_length(project, origin.source, first))
        elif name in _OF_A_SIZE:
            size = first.elts[0] if isinstance(first, ast.Tuple) and first.elts else first
            lengths.add(_number(project, origin.source, size))
        else:
            return None
    return lengths.pop() if len(lengths) == 1 else None
