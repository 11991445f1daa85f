"""Writes a split into a script."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from pilotage.errors import PredictionError
from pilotage.prediction.splitting.lines import begin_block_lines
from pilotage.whole_files import write_whole

__all__ = ["apply_split"]

_WRAPPERS = ("trainingModel", "inferenceModel")


def apply_split(script: Path, modules: Sequence[str]) -> list[str]:
    """Insert the lines before the model is wrapped; returns them as they were written."""
    text = script.read_bytes().decode("utf-8")
    if "BeginBlock(" in text:
        raise PredictionError(f"{script} already begins blocks: remove these lines first, then apply the split.")
    statement, model = _wrapping(ast.parse(text), script)
    indent = " " * statement.col_offset
    lines = begin_block_lines(modules, model)
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
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in _WRAPPERS and call.args and not isinstance(statement, ast.If | ast.Try):
                found.append((statement, call.args[0]))
    found.sort(key=lambda pair: pair[0].lineno)
    for statement, model in found:
        if isinstance(model, ast.Name | ast.Attribute):
            return statement, ast.unparse(model)
    raise PredictionError(
        f"{script} has no call of poptorch.trainingModel or inferenceModel with a variable for its model, so the "
        "lines cannot be inserted. Copy them to the place where the model is ready."
    )
