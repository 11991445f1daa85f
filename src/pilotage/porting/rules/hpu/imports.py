"""The import of Habana's bridge, and the mode that it runs in."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, GuideEdit, Rule
from pilotage.porting.rules.hpu.mode_enum import mode_enum
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_CORE = "import habana_frameworks.torch.core"
_MODE = 'os.environ.setdefault("PT_HPU_LAZY_MODE", "0")  # 0: eager, 1: lazy; read by the next import'
_NEEDING = (
    "hpu-device",
    "hpu-names",
    "hpu-placement",
    "hpu-autocast",
    "hpu-mark-step",
    "hpu-compute-mode",
    "hpu-compile",
)


def _apply(porting: Porting) -> None:
    sources = porting.project.sources
    needing = [each for each in sources if _rules(porting, each).intersection(_NEEDING) and _imports_torch(each)]
    is_optional = mode_enum(porting.project) is not None
    imported = {each for source in sources for each in porting.project.imports(source)}
    entries = [each for each in sources if each not in imported and _imports_torch(each)] if needing else []
    for source in dict.fromkeys([*needing, *entries]):
        if "habana_frameworks.torch" not in source.text:
            _add(porting, source, is_optional=is_optional, is_entry=source in entries)
    for source in sources:
        if "contextlib.nullcontext()" in {each.text for each in porting.edits(source)}:
            _add_standard_import(porting, source, "contextlib")


def _rules(porting: Porting, source: Source) -> set[str]:
    return {each.rule for each in porting.edits(source)}


def _add(porting: Porting, source: Source, *, is_optional: bool, is_entry: bool) -> None:
    is_marked = "hpu-mark-step" in _rules(porting, source)
    if is_optional:
        if not is_marked and "hpu-compute-mode" not in _rules(porting, source):
            return
        lines = [
            "try:",
            f"    {_CORE} as htcore",
            "except ImportError:",
            "    htcore = None  # only the mode HPU needs it",
        ]
        if not is_marked:
            lines = ["try:", f"    {_CORE}", "except ImportError:", "    pass  # only the mode HPU needs it"]
    else:
        lines = [f"{_CORE} as htcore" if is_marked else f"{_CORE}  # registers the device hpu"]
        if is_entry:
            lines = [*([] if _knows(porting, source, "os") else ["import os"]), _MODE, *lines]
    after = _after_torch(source)
    porting.edit(source, after, after, "".join(f"{line}\n" for line in lines), RULE.name)
    if is_entry and not is_optional:
        porting.find(
            source,
            source.tree.body[0],
            RULE.name,
            Severity.NOTE,
            "The script runs in eager mode unless PT_HPU_LAZY_MODE=1 is set, which is lazy mode.",
        )


def _add_standard_import(porting: Porting, source: Source, name: str) -> None:
    if not _knows(porting, source, name):
        after = _after_torch(source)
        porting.edit(source, after, after, f"import {name}\n", RULE.name)


def _knows(porting: Porting, source: Source, name: str) -> bool:
    return porting.project.names[source].imported.get(name) == name


def _imports_torch(source: Source) -> bool:
    return _last_import(source) is not None


def _after_torch(source: Source) -> int:
    """The end of the last import of torch at the beginning of a script."""
    last = _last_import(source)
    assert last is not None
    assert last.end_lineno is not None
    return source.line_start(last.end_lineno + 1)


def _last_import(source: Source) -> ast.stmt | None:
    found = None
    for each in source.tree.body:
        if isinstance(each, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.For | ast.If):
            break
        if (isinstance(each, ast.Import) and any(alias.name.split(".")[0] == "torch" for alias in each.names)) or (
            isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] == "torch"
        ):
            found = each
    return found


RULE = Rule(
    name="hpu-imports",
    targets=frozenset({Target.HPU}),
    what="Habana's bridge is imported below torch, and the mode is set before that; in programs that choose their "
    "device by a mode, the import may fail.",
    why="The import registers the device `hpu` and reads `PT_HPU_LAZY_MODE`: a later change has no effect. Eager mode "
    "is the vendor's default now and was not in older releases, so the script says it.",
    example=Example(
        before="""\
import torch

device = torch.device("cuda")
""",
        after=f"""\
import torch
import os
{_MODE}
{_CORE}  # registers the device hpu

device = torch.device("cuda")
""",
        finds="runs in eager mode",
    ),
    apply=_apply,
    not_followed=(
        GuideEdit(
            guide="CosmicTagger on Habana",
            edit="imports `TRUE` from `pickle` and `I` from `re`",
            instead="leaves both out: nothing uses them",
        ),
        GuideEdit(
            guide="CosmicTagger on Habana",
            edit="sets `PT_HPU_LAZY_MODE` after the bridge was imported, to `2` for eager mode",
            instead="before the import, which reads it; eager mode is `0` in present releases",
        ),
        GuideEdit(
            guide="CosmicTagger on Habana",
            edit="takes `version_base` out of `hydra.main`",
            instead="leaves it: only older releases of hydra refuse it",
        ),
    ),
)
