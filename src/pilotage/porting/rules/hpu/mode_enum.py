"""Programs that choose their device by an enumeration, such as ``ComputeMode.GPU``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["ModeEnum", "compared_mode", "is_of_another_mode", "mode_enum"]

HPU = "HPU"
_CARD = ("GPU", "CUDA")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModeEnum:
    """An enumeration of devices with a processor and a card among its members."""

    source: Source
    node: ast.ClassDef
    card: str
    """The member that stands for CUDA."""

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.node.name

    @property
    def members(self) -> list[tuple[str, ast.Assign]]:
        """Names and assignments, in order."""
        return [
            (target.id, each)
            for each in self.node.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name)
        ]

    @property
    def has_hpu(self) -> bool:
        """Whether the program knows Gaudi already."""
        return any(name == HPU for name, _ in self.members)


def mode_enum(project: Project) -> ModeEnum | None:
    """The enumeration of devices of a project, if it has one."""
    for source in project.sources:
        for node in ast.walk(source.tree) if "Enum" in source.text else ():
            if isinstance(node, ast.ClassDef) and any(_is_enum(project, source, base) for base in node.bases):
                names = {target.id for each in node.body for target in _targets(each)}
                card = next((name for name in _CARD if name in names), None)
                if "CPU" in names and card is not None:
                    return ModeEnum(source=source, node=node, card=card)
    return None


def compared_mode(enum: ModeEnum, test: ast.expr) -> tuple[ast.expr, str] | None:
    """The value and the member of the enumeration that a test compares; None for other tests."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq | ast.Is):
        return None
    member = test.comparators[0]
    if not isinstance(member, ast.Attribute):
        return None
    owner = member.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return (test.left, member.attr) if name == enum.name else None


def is_of_another_mode(enum: ModeEnum | None, source: Source, node: ast.AST) -> bool:
    """Whether code runs in one mode of the program only, which keeps its device."""
    if enum is None:
        return False
    child = node
    for parent in source.ancestors(node):
        if isinstance(parent, ast.If) and any(child is each for each in parent.body):
            found = compared_mode(enum, parent.test)
            if found is not None and found[1] != HPU:
                return True
        child = parent
    return False


def _is_enum(project: Project, source: Source, base: ast.expr) -> bool:
    name = project.names[source].dotted(base) or ""
    return name in ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag")


def _targets(statement: ast.stmt) -> Iterator[ast.Name]:
    if isinstance(statement, ast.Assign):
        yield from (each for each in statement.targets if isinstance(each, ast.Name))
