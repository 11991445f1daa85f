"""Blocks whose statements all go: a condition without an else goes too, others get a ``pass``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pilotage.porting.sources.layout import indentation, lines_of
from pilotage.porting.sources.source import Source

if TYPE_CHECKING:
    from pilotage.porting.porting import Porting

__all__ = ["fill_empty_blocks"]

_RULE = "device-moves"


def fill_empty_blocks(porting: Porting, source: Source) -> None:
    """Make sure that no block is left without a statement."""
    removed = porting.removed(source)
    is_changed = bool(removed)
    while is_changed:
        is_changed = False
        for node in ast.walk(source.tree):
            if isinstance(node, ast.If) and node not in removed and not node.orelse and set(node.body) <= removed:
                porting.remove(source, node, _RULE)
                is_changed = True
    filled = {each.start for each in porting.edits(source) if each.text.strip()}
    for node in ast.walk(source.tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block or not isinstance(block[0], ast.stmt):
                continue
            if set(block) <= removed and node not in removed and not isinstance(node, ast.Module):
                start, _ = lines_of(source, block[0], with_comments=True)
                end = lines_of(source, block[-1])[1]
                if not any(start <= each <= end for each in filled):
                    porting.edit(source, start, start, f"{indentation(source, block[0])}pass\n", _RULE)
