"""Python numbers in a training step: each value needs its own program, so those that change have to become tensors."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["is_random_number", "single_constant"]

_RANDOM_NUMBERS = {
    *(f"random.{name}" for name in ("random", "uniform", "gauss", "normalvariate", "betavariate", "triangular")),
    *(f"numpy.random.{name}" for name in ("beta", "normal", "rand", "randn", "random", "uniform")),
}
"""Functions that draw one number."""


def is_random_number(project: Project, source: Source, node: ast.expr) -> bool:
    """Whether an expression is a number that Python or numpy draws, such as the weight of a mixup."""
    drawn = [each for each in origins(project, source, node) if not isinstance(each.node, ast.Constant)]
    return bool(drawn) and all(
        project.names[each.source].calls(each.node) in _RANDOM_NUMBERS and _is_single(each.node) for each in drawn
    )


def single_constant(project: Project, source: Source, node: ast.expr) -> str | None:
    """The number or text of a constant expression; None if its value is not known or changes."""
    found = [each.node for each in origins(project, source, node)]
    return ast.unparse(found[0]) if len(found) == 1 and isinstance(found[0], ast.Constant) else None


def _is_single(node: ast.AST) -> bool:
    """Whether a function of numpy draws one number and not an array."""
    assert isinstance(node, ast.Call)
    is_sized = getattr(node.func, "attr", "") in ("rand", "randn", "random") and bool(node.args)
    return not is_sized and len(node.args) < 3 and not any(each.arg == "size" for each in node.keywords)
