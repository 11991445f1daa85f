"""A script: its text, its tree, and the position of each node in the text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pilotage.errors import PortingError

__all__ = ["Source", "lines_in"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as Python counts them; `splitlines` also ends lines at other characters, such as form feeds."""


def lines_in(text: str) -> list[str]:
    """The lines of a script with their ends, as Python counts them."""
    return _LINE.findall(text)


class Source:
    """One parsed script; never changed."""

    def __init__(
        self, path: Path, text: str, *, original: Source | None = None, first: int = 0, added: int = 0
    ) -> None:
        self.path = path
        self.text = text
        self._original = original
        self._first, self._added = first, added
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            place = f"{path}:{error.lineno or 1}:{error.offset or 1}"
            raise PortingError(f"{place}: this is not valid Python: {error.msg}.") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise PortingError(f"{path}: this cannot be read as Python: {error}.") from None
        self._lines = lines_in(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.nodes = list(ast.walk(self.tree))
        """Every node, walked once."""
        self.parents: dict[ast.AST, ast.AST] = {
            child: parent for parent in self.nodes for child in ast.iter_child_nodes(parent)
        }

    @property
    def name(self) -> str:
        """The path as findings show it."""
        return str(self.path)

    @property
    def newline(self) -> str:
        """The line ending of the script."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def offset(self, line: int, column: int) -> int:
        """Where a line (from 1) and a column in UTF-8 bytes (from 0), as in nodes, are in the text."""
        return self._starts[line - 1] + self._characters(line, column)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends in the text; decorators belong to it."""
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg | ast.excepthandler | ast.alias)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.excepthandler | ast.alias = node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
            first = node.decorator_list[0]
            start = self.text.rindex("@", 0, self.offset(first.lineno, first.col_offset))
        else:
            start = self.offset(first.lineno, first.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column of a node, both from 1."""
        line: int = getattr(node, "lineno", 1)
        return line, self._characters(line, getattr(node, "col_offset", 0)) + 1

    def reported_place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column of a node in the file, if lines were replaced since it was read."""
        line, column = self.place(node)
        return self._in_file(line), column

    @property
    def file_text(self) -> str:
        """The text of the file."""
        return self.text if self._original is None else self._original.file_text

    def replaced(self, start: int, end: int, text: str) -> Source:
        """The script with other lines in place of some; findings still name the lines of the file."""
        first = self.text.count("\n", 0, start) + 1
        added = text.count("\n") - self.text.count("\n", start, end)
        return Source(self.path, self.text[:start] + text + self.text[end:], original=self, first=first, added=added)

    def _in_file(self, line: int) -> int:
        if self._original is None:
            return line
        before = line if line < self._first else max(self._first, line - self._added)
        return self._original._in_file(before)

    def line(self, number: int) -> str:
        """A line (from 1) with its end."""
        return self._lines[number - 1]

    def line_start(self, number: int) -> int:
        """Where a line (from 1) begins; the number after the last line gives the end of the text."""
        return self._starts[number - 1]

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement is in."""
        parent = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            found = getattr(parent, name, None)
            if isinstance(found, list) and any(each is statement for each in found):
                return found
        raise AssertionError(f"{ast.dump(statement)} is in no block")

    def ancestors(self, node: ast.AST) -> list[ast.AST]:
        """The nodes around a node, from the innermost to the module."""
        found = []
        while node in self.parents:
            node = self.parents[node]
            found.append(node)
        return found

    def _characters(self, line: int, column: int) -> int:
        if line > len(self._lines):
            return 0
        text = self._lines[line - 1]
        return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))
