"""Print the functions of ours that first and later calls go through, of PopTorch's wrapper and of the public door.

``python tools/call_walk.py`` prints the walks; ``--write`` puts them into ARCHITECTURE.md, under "The walk of a call",
the long ones of first calls with numbers in place of names. Every function of ours counts, however small: methods,
properties, functions inside of others. Those that are entered more than once count once and have their number of
times, and those that only forward their arguments to another one of ours have an arrow.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- walk of a call: begin -->", "<!-- walk of a call: end -->"
SOURCES = (ROOT / "src", ROOT / "dropins/src")
WIDTH = 116
INSIDE = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>"})
"""Frames that belong to the function around them, or to an import."""


@dataclass
class Walk:
    """Functions of ours in the order in which a call first enters them."""

    title: str
    counts: dict[CodeType, int] = field(default_factory=dict)
    callers: dict[CodeType, set[CodeType]] = field(default_factory=dict)

    def follow(self, call: Callable[[], Any]) -> None:
        """Make a call and note what it goes through in this thread."""
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(before)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and _is_ours(frame.f_code):
            self.counts[frame.f_code] = self.counts.get(frame.f_code, 0) + 1
            if frame.f_back is not None:
                self.callers.setdefault(frame.f_code, set()).add(frame.f_back.f_code)

    def forwarders(self) -> set[CodeType]:
        """Functions that only pass their arguments on to another one of ours."""
        called = {caller for callers in self.callers.values() for caller in callers}
        return {code for code in self.counts.keys() & called if _only_forwards(code)}

    def text(self, *, names: bool = True) -> str:
        """The walk, file by file, with the names of its functions or only their number."""
        forwarders, files = self.forwarders(), self._by_file()
        heading = (
            f"{self.title}: {len(self.counts)} functions in {len(files)} files, "
            f"{len(forwarders)} of which only forward their arguments."
        )
        if names:
            lines = [
                f"{file}: {', '.join(self._named(code, forwarders) for code in codes)}" for file, codes in files.items()
            ]
        else:
            lines = textwrap.wrap(", ".join(f"{file} ({len(codes)})" for file, codes in files.items()), WIDTH)
        return "\n".join([heading, "", "```", *lines, "```"])

    def _named(self, code: CodeType, forwarders: set[CodeType]) -> str:
        times = f" ×{self.counts[code]}" if self.counts[code] > 1 else ""
        return f"{code.co_qualname}{times}{' ->' if code in forwarders else ''}"

    def _by_file(self) -> dict[str, list[CodeType]]:
        files: dict[str, list[CodeType]] = {}
        for code in self.counts:
            files.setdefault(_shown(code.co_filename), []).append(code)
        return files


def _is_ours(code: CodeType) -> bool:
    return code.co_name not in INSIDE and _shown(code.co_filename) != ""


@cache
def _shown(file: str) -> str:
    """A file of ours without the folder of the project; nothing for files of others."""
    return next((f"{Path(file).relative_to(folder)}" for folder in SOURCES if Path(file).is_relative_to(folder)), "")


def _only_forwards(code: CodeType) -> bool:
    """Whether a function is a single call that takes nothing but the function's own arguments."""
    function = next(
        (each for each in _functions(code.co_filename) if each.name == code.co_name and _starts_at(each, code)), None
    )
    if function is None:
        return False
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr) or not isinstance(body[0].value, ast.Call):
        return False
    call, given = body[0].value, {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    plain = [value.value if isinstance(value, ast.Starred) else value for value in values]
    has_own = bool(given - {"self", "cls"})
    return bool(plain) == has_own and all(isinstance(value, ast.Name) and value.id in given for value in plain)


def _starts_at(function: ast.FunctionDef, code: CodeType) -> bool:
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return code.co_firstlineno in (first, function.lineno)


@cache
def _functions(file: str) -> tuple[ast.FunctionDef, ...]:
    tree = ast.parse(Path(file).read_text())
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def walks() -> Iterator[Walk]:
    """The four walks, each over a small model in the graph tier, so that no compiler takes part."""
    import torch
    from torch import nn

    import pilotage
    import poptorch

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)
            self.loss = nn.CrossEntropyLoss()

        def forward(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            outputs = self.layer(images)
            return outputs, self.loss(outputs, labels)

    batch = torch.zeros(3, 4), torch.zeros(3, dtype=torch.int64)
    model = Model()
    wrapped = poptorch.trainingModel(model, optimizer=poptorch.optim.SGD(model.parameters(), lr=0.1))
    yield from _first_and_later("poptorch.trainingModel", lambda: wrapped(*batch))
    model = Model()
    step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1))
    yield from _first_and_later("pilotage.training", lambda: step(*batch))


def _first_and_later(name: str, call: Callable[[], Any]) -> Iterator[Walk]:
    first, later = Walk(f"First call of `{name}`"), Walk(f"A later call of `{name}`")
    first.follow(call)
    call()
    later.follow(call)
    yield first
    yield later


def write(text: str) -> None:
    """Put the walks between the two marks of ARCHITECTURE.md."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE} has no lines {BEGIN} and {END}.")
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    """Print the walks, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the walks into ARCHITECTURE.md")
    arguments = parser.parse_args()
    os.environ.update(PILOTAGE_TIER="graph", PILOTAGE_BACKEND="cpu", POPTORCH_LOG_LEVEL="ERR")
    found = list(walks())
    if arguments.write:
        write("\n\n".join(walk.text(names="later" in walk.title) for walk in found))
    else:
        print("\n\n".join(walk.text() for walk in found))


if __name__ == "__main__":
    main()
