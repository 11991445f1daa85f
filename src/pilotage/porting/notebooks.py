"""Notebooks: their code as one script and back, cell by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pilotage.errors import PortingError
from pilotage.porting.finding import Finding

__all__ = ["Notebook", "in_cell", "read_notebook"]

_BEGIN = "# %% cell {}"
_BEGINS = re.compile(r"^# %% cell (?P<number>\d+)\n", re.MULTILINE)
_HIDDEN = "# (notebook) "
"""The prefix that turns lines of IPython into comments, so that the rest is Python."""

_STATEMENT = "pass  "
_MAGIC = re.compile(r"\s*[%!?]|\s*[\w.]+\?{1,2}\s*$|\s*\w[\w, ]*=\s*[!%]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Notebook:
    """A notebook, and its code as a script."""

    content: dict[str, Any]
    """The whole file."""

    source: str
    """The code cells as one script; each begins with a comment that says which one it is."""

    indent: int
    """The indentation of the file."""

    def replaced(self, source: str) -> str:
        """The notebook with the code of another script; outputs of cells that changed are dropped."""
        texts = _cells_of(source)
        cells = [_cell(each, texts.get(number)) for number, each in enumerate(self.content["cells"])]
        changed = {**self.content, "cells": cells}
        return json.dumps(changed, indent=self.indent, ensure_ascii=False) + "\n"

    def place(self, line: int) -> tuple[int, int]:
        """The number of the code cell, counted from 1, and the line in it, for a line of the script."""
        head = self.source.split("\n")[:line]
        starts = [number for number, text in enumerate(head, 1) if _BEGINS.match(text + "\n")]
        return (len(starts), line - starts[-1]) if starts else (0, line)


def read_notebook(path: Path, text: str) -> Notebook:
    """Read a notebook of format 4."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise PortingError(f"{path}: this is not a notebook: {error}.") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(each, dict) and "source" in each for each in cells):
        raise PortingError(f"{path}: this is not a notebook of format 4. Convert it with `jupyter nbconvert`.")
    parts = [
        f"{_BEGIN.format(number)}\n{_hidden(_text(each))}\n"
        for number, each in enumerate(cells)
        if each.get("cell_type") == "code" and not _is_other_language(_text(each))
    ]
    indent = re.match(r"\{\n( +)", text)
    return Notebook(content=content, source="".join(parts), indent=len(indent[1]) if indent else 1)


def in_cell(finding: Finding, notebook: Notebook | None) -> Finding:
    """A finding with its place in the cell instead of in the script that the cells make."""
    if notebook is None:
        return finding
    cell, line = notebook.place(finding.line)
    return replace(finding, path=f"{finding.path}:cell {cell}", line=line)


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)


def _is_other_language(text: str) -> bool:
    """Whether a cell is for a shell or another language as a whole."""
    first = text.lstrip().split("\n", 1)[0]
    return first.startswith("%%") and first.split()[0] not in ("%%time", "%%timeit", "%%capture", "%%prun")


def _hidden(text: str) -> str:
    """Code whose lines of IPython are comments; lines that follow a backslash belong to them."""
    lines: list[str] = []
    is_continued = False
    for line in text.split("\n"):
        was_continued = is_continued
        is_magic = is_continued or _MAGIC.match(line) is not None
        is_continued = is_magic and line.endswith("\\")
        indent = line[: len(line) - len(line.lstrip())]
        # In a block it is a statement, because it may be the only one.
        statement = _STATEMENT if indent and not was_continued else ""
        lines.append(f"{indent}{statement}{_HIDDEN}{line.lstrip()}" if is_magic else line)
    return "\n".join(lines)


def _shown(text: str) -> str:
    return re.sub(rf"^([ \t]*)(?:{_STATEMENT})?{re.escape(_HIDDEN)}", r"\1", text, flags=re.MULTILINE)


def _cells_of(source: str) -> dict[int, str]:
    """The text of each code cell in a script; what a port puts before the first one belongs to it."""
    found = list(_BEGINS.finditer(source))
    ends = [*[each.start() for each in found[1:]], *([len(source)] if found else [])]
    texts = {int(each["number"]): source[each.end() : end] for each, end in zip(found, ends, strict=True)}
    if found and (head := source[: found[0].start()]):
        first = int(found[0]["number"])
        texts[first] = head + texts[first]
    return {number: _shown(text.removesuffix("\n")) for number, text in texts.items()}


def _cell(cell: dict[str, Any], text: str | None) -> dict[str, Any]:
    if text is None or text == _text(cell):
        return cell
    return {**cell, "source": _lines(text), "outputs": [], "execution_count": None}


def _lines(text: str) -> Sequence[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
