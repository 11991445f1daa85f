"""Files that every instance writes get names of their own."""

from __future__ import annotations

import ast
import re

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

NAME = "file-names"
_INDEX = "{popdist.getInstanceIndex()}"


def apply(porting: Porting) -> None:
    """Put the index of the instance into the names of files that are opened for writing."""
    if not porting.has_work:
        return
    for source in porting.project.sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and node.args and _writes(porting, source, node):
                porting.replace(source, node.args[0], _named(source, node.args[0]), NAME)


def _writes(porting: Porting, source: Source, call: ast.Call) -> bool:
    name = porting.project.names[source].dotted(call.func) or ""
    if name.endswith("SummaryWriter") or name == "logging.FileHandler":
        return True
    if not isinstance(call.func, ast.Name) or call.func.id != "open":
        return False
    mode = next((each.value for each in call.keywords if each.arg == "mode"), None)
    mode = mode if mode is not None else (call.args[1] if len(call.args) > 1 else None)
    return isinstance(mode, ast.Constant) and str(mode.value)[:1] in ("w", "a", "x")


def _named(source: Source, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w./-]+", node.value):
        stem, dot, suffix = node.value.rpartition(".")
        return f'f"{stem}-{_INDEX}.{suffix}"' if dot and stem and "/" not in suffix else f'f"{node.value}-{_INDEX}"'
    return (
        f'f"{{{source.segment(node)}}}-{_INDEX}"'
        if '"' not in source.segment(node)
        else (f'str({source.segment(node)}) + f"-{_INDEX}"')
    )


RULE = Rule(
    name=NAME,
    targets=frozenset({Target.POPDIST}),
    what="Files that are opened for writing, and folders of TensorBoard, get the index of the instance in their names.",
    why="Every instance runs the script, and two of them must not write one file.",
    example=Example(
        before=PLAIN_STEP
        + """\
log = open("losses.csv", "w")
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.write(f"{loss.item()}\\n")
""",
        after=PLAIN_STEP
        + """\
log = open(f"losses-{popdist.getInstanceIndex()}.csv", "w")
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.write(f"{loss.item()}\\n")
""",
    ),
    apply=apply,
)
