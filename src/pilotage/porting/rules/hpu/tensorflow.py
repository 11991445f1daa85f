"""Scripts of TensorFlow."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.scopes import Function
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mode_enum import ModeEnum, compared_mode, mode_enum
from pilotage.porting.sources.layout import indentation, unit_of_indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_IMPORT = "from habana_frameworks.tensorflow import load_habana_module"
_CALL = "load_habana_module()"


def _apply(porting: Porting) -> None:
    enum = mode_enum(porting.project)
    for source in porting.project.sources:
        imported = _import(source)
        if imported is None or _CALL in source.text:
            continue
        if enum is None:
            _load_at_import(porting, source, imported)
        else:
            _load_in_its_mode(porting, source, enum)
        porting.find(
            source,
            imported,
            RULE.name,
            Severity.NOTE,
            "TensorFlow places operations on Gaudi by itself once Habana's module is loaded.",
        )


def _import(source: Source) -> ast.stmt | None:
    for each in source.tree.body:
        if isinstance(each, ast.Import) and any(alias.name.split(".")[0] == "tensorflow" for alias in each.names):
            return each
        if isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] == "tensorflow":
            return each
    return None


def _load_at_import(porting: Porting, source: Source, imported: ast.stmt) -> None:
    """Below the first group of imports."""
    last = imported
    for each in source.tree.body[source.tree.body.index(imported) :]:
        if not isinstance(each, ast.Import | ast.ImportFrom):
            break
        last = each
    assert last.end_lineno is not None
    after = source.line_start(last.end_lineno + 1)
    porting.edit(source, after, after, f"{_IMPORT}\n\n{_CALL}\n", RULE.name)


def _load_in_its_mode(porting: Porting, source: Source, enum: ModeEnum) -> None:
    """At the beginning of the first method that uses TensorFlow, in Gaudi's mode only."""
    method, mode = _first_user(source), _mode(source, enum)
    if method is None or mode is None:
        return
    first = method.body[0]
    indent, inner = indentation(source, first), unit_of_indentation(source)
    start = source.line_start(first.lineno)
    lines = [f"if {mode} == {enum.name}.HPU:", f"{inner}{_IMPORT}", f"{inner}{_CALL}"]
    porting.edit(source, start, start, "".join(f"{indent}{line}\n" for line in lines), RULE.name)


def _first_user(source: Source) -> ast.FunctionDef | None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, Function) and any(
                    isinstance(each, ast.Name) and each.id in ("tf", "tensorflow") for each in ast.walk(method)
                ):
                    return method if isinstance(method, ast.FunctionDef) else None
    return None


def _mode(source: Source, enum: ModeEnum) -> str | None:
    for node in ast.walk(source.tree):
        found = compared_mode(enum, node.test) if isinstance(node, ast.If) else None
        if found is not None:
            return source.segment(found[0])
    return None


RULE = Rule(
    name="hpu-tensorflow",
    targets=frozenset({Target.HPU}),
    what="A script that imports TensorFlow calls `load_habana_module()` below its imports, or in Gaudi's mode only.",
    why="Loading the module registers Gaudi with TensorFlow; nothing else changes.",
    example=Example(
        before="""\
import tensorflow as tf

model = tf.keras.Sequential()
""",
        after=f"""\
import tensorflow as tf
{_IMPORT}

{_CALL}

model = tf.keras.Sequential()
""",
        finds="places operations on Gaudi by itself",
    ),
    apply=_apply,
)
