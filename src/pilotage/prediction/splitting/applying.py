"""Writes a split into a script."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from pilotage.errors import PredictionError
from pilotage.whole_files import write_whole

__all__ = ["apply_split"]

_WRAPPERS = ("trainingModel", "inferenceModel", "pilotage.training", "pilotage.inference")


def apply_split(script: Path, lines_for: Callable[[str], list[str]]) -> list[str]:
    """Insert the lines for the script's model before it is wrapped; returns the inserted lines."""
    text = script.read_bytes().decode("utf-8")
    if "BeginBlock(" in text or "enter_stage(" in text:
        raise PredictionError(f"{script} already begins blocks: remove these lines first, then apply the split.")
    statement, model = _wrapping(ast.parse(text), script)
    indent = " " * statement.col_offset
    lines = lines_for(model)
    rows = text.splitlines(keepends=True)
    ending = "\r\n" if rows and rows[0].endswith("\r\n") else "\n"
    rows[statement.lineno - 1 : statement.lineno - 1] = [f"{indent}{line}{ending}" for line in lines]
    changed = "".join(rows)
    ast.parse(changed)
    write_whole(script, changed.encode("utf-8"))
    return lines


def _wrapping(tree: ast.Module, script: Path) -> tuple[ast.stmt, str]:
    """The first statement that wraps a model for training or inference, and the name of the model."""
    found = []
    for statement in (each for each in ast.walk(tree) if isinstance(each, ast.stmt)):
        if isinstance(
            statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.While | ast.With
        ):
            continue
        for call in (each for each in ast.walk(statement) if isinstance(each, ast.Call)):
            if _is_wrapper(call.func) and call.args and not isinstance(statement, ast.If | ast.Try):
                found.append((statement, call.args[0]))
    found.sort(key=lambda pair: pair[0].lineno)
    for statement, model in found:
        if isinstance(model, ast.Name | ast.Attribute):
            return statement, ast.unparse(model)
    raise PredictionError(
        f"{script} has no call of poptorch.trainingModel, pilotage.training or the like with a variable for its "
        "model, so the lines cannot be inserted. Copy them to the place where the model is ready."
    )


def _is_wrapper(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _WRAPPERS or ast.unparse(function) in _WRAPPERS
