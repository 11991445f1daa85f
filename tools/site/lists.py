"""Lists as Python's Markdown reads them: after an empty line, and with four spaces before what belongs to an item."""

from __future__ import annotations

import re

from tools.site.links import outside_of_code

_ITEM = re.compile(r"^( {0,3})(?:[-*+]|\d+\.) +\S")


def spaced(text: str) -> str:
    """The same lists, with the empty lines and the spaces that Python's Markdown wants."""
    return outside_of_code(text, _with_empty_lines)


def _with_empty_lines(text: str) -> str:
    lines: list[str] = []
    in_list = False
    for line in text.splitlines(keepends=True):
        is_item = _ITEM.match(line) is not None
        if is_item and not in_list and lines and lines[-1].strip():
            lines.append("\n")
        if is_item and not line.startswith(" "):
            in_list = True
        elif line.strip() and not line.startswith(" "):
            # A paragraph may continue an item without spaces, until an empty line.
            in_list = in_list and bool(lines) and bool(lines[-1].strip())
        elif in_list and re.match(r" {2,3}\S", line):
            line = "    " + line.lstrip(" ")
        lines.append(line)
    return "".join(lines)
