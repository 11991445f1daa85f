"""Why something cannot be converted, found while a script is analysed."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pilotage.porting.sources.source import Source

__all__ = ["Refusal", "Refused"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """One place that cannot be converted."""

    source: Source
    node: ast.AST
    rule: str
    """The rule that explains it."""

    detail: str = ""
    """Details of this place for the message, such as a name."""


class Refused(Exception):
    """Ends the analysis of one training step."""

    def __init__(self, source: Source, node: ast.AST, rule: str, detail: str = "") -> None:
        super().__init__(rule)
        self.refusal = Refusal(source=source, node=node, rule=rule, detail=detail)
