"""The lines to write for half precision, and notes on what stays in float32."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pilotage.prediction.changes.variants import Conversion
from pilotage.prediction.prediction import Prediction
from pilotage.prediction.trace.operations import Phase, TracedOperation
from pilotage.prediction.trace.work import MATRIX_PRODUCTS

__all__ = ["how_to_halve", "stays_wide"]

_WORDS = {"float16": "half", "bfloat16": "bfloat16"}
_NAMED = 2
"""How many attributes are written out."""


def how_to_halve(kind: str, types: Sequence[Conversion]) -> str:
    """The lines to write; ``types`` are attributes that forward takes a type from."""
    lines = [f"model.{_WORDS[kind]}()"]
    for path, name in types[:_NAMED]:
        lines.append(f"{'.'.join(filter(None, ('model', path, name)))} = torch.{kind}")
    if len(types) > _NAMED:
        lines.append(f"the same for {len(types) - _NAMED} more attributes that are torch.float32")
    return f"{', '.join(lines)}, and inputs of that type"


def stays_wide(prediction: Prediction) -> str:
    """A note for a program in half precision that still multiplies mostly in float32; otherwise empty."""
    operations = prediction.traced.update.operations
    products = [each.work for each in operations if each.work.kind in MATRIX_PRODUCTS]
    wide = sum(each.flops for each in products if each.type == "float32")
    if 2 * wide <= sum(each.flops for each in products):
        return ""
    line = next((each.line for each in operations if _widens(each) and each.line is not None), None)
    where = "" if line is None else f": forward converts to float32 at {Path(line).name}"
    return f"; most of it stays in float32{where}"


def _widens(operation: TracedOperation) -> bool:
    is_copy = operation.phase is Phase.FORWARD and operation.name == "aten._to_copy"
    return is_copy and operation.output.startswith("f32")
