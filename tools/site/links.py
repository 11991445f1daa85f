"""Links that work in the repository, rewritten for the site."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from posixpath import dirname, normpath, relpath

ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "dropins/README.md": "project/dropins.md",
    "examples/faster/README.md": "examples/faster.md",
    "examples/fashion_mnist/README.md": "examples/fashion_mnist.md",
    "examples/gaudi/README.md": "examples/gaudi.md",
    "examples/porting/README.md": "examples/porting.md",
    "examples/poptorch/README.md": "examples/poptorch.md",
}
"""Documents outside of docs/, and their places on the site."""

_SAME = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "examples": "examples/fashion_mnist.md",
    "examples/faster/faster.ipynb": "examples/faster-notebook.md",
    **{str(Path(source).parent): page for source, page in ELSEWHERE.items() if source.startswith("examples/")},
}
"""What a reader of the site is shown instead."""

_SOURCES = {page: source for source, page in ELSEWHERE.items()}
_LINK = re.compile(r"(!?)\[([^\]\n]*(?:\n[^\]\n]+)?)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(\s*)(```|~~~)")


def relinked(text: str, page: str) -> str:
    """The text of a page, with links to pages of the site; of a link to any other file only the words stay."""
    source = _SOURCES.get(page, f"docs/{page}")
    return outside_of_code(text, lambda part: _LINK.sub(lambda link: _replaced(link, source, page), part))


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Change the parts of a text outside code blocks."""
    parts: list[tuple[bool, list[str]]] = [(False, [])]
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[2]
            parts.append((True, [line]))
        elif fence and found and found[2] == fence:
            fence = ""
            parts[-1][1].append(line)
            parts.append((False, []))
        else:
            parts[-1][1].append(line)
    return "".join("".join(lines) if is_code else change("".join(lines)) for is_code, lines in parts)


def _replaced(link: re.Match[str], source: str, page: str) -> str:
    picture, words, target, anchor = link.groups(default="")
    place = page_of(normpath(f"{dirname(source)}/{target}".lstrip("/")))
    if place is None:
        return "" if picture else words
    return f"{picture}[{words}]({relpath(place, dirname(page) or '.')}{anchor})"


def page_of(path: str) -> str | None:
    """Where a file of the repository is on the site, if it is there."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path in _SAME:
        return _SAME[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None
