"""Put reports, script, style and template together into one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from pilotage.errors import ReportError
from pilotage.prediction.document import Report
from pilotage.prediction.report.compact import compact

__all__ = ["MOST_REPORTS", "page_of"]

MOST_REPORTS = 2

_SCRIPTS = (
    "dom.js",
    "format.js",
    "data.js",
    "charts.js",
    "rows.js",
    "views/summary.js",
    "views/memory.js",
    "views/operations.js",
    "views/layers.js",
    "views/tiles.js",
    "views/pipeline.js",
    "views/host.js",
    "views/compare.js",
    "views/details.js",
    "application.js",
)
"""In this order they become one script."""


def page_of(reports: Sequence[Report]) -> str:
    """The page of one report, or of two side by side; it loads nothing else."""
    if not 1 <= len(reports) <= MOST_REPORTS:
        raise ReportError(f"A page shows one report, or two side by side; {len(reports)} were given.")
    titles = [report.title for report in reports]
    script = f'"use strict";\n(() => {{\n{"".join(map(_asset, _SCRIPTS))}}})();\n'
    parts = {
        "title": html.escape(" and ".join(titles) if titles[0] != titles[-1] else titles[0]),
        "style": _asset("style.css"),
        "data": script_data({"reports": [compact(report) for report in reports]}),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return filled(_asset("page.html"), parts)


def script_data(data: Any) -> str:
    """Plain data as JSON that cannot end the script element around it."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    # Half of a surrogate pair cannot be written as UTF-8.
    return text.encode("utf-8", errors="backslashreplace").decode()


def filled(template: str, parts: dict[str, str]) -> str:
    """A template with each {{name}} replaced once; what is put in is never searched again."""
    pieces = template.split("{{")
    whole = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        whole += [parts[name], rest]
    return "".join(whole)


def _asset(name: str) -> str:
    return files("pilotage.prediction.report").joinpath("assets", name).read_text(encoding="utf-8")
