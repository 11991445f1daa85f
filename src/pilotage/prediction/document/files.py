"""Read and write reports as JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pilotage.errors import ReportError
from pilotage.prediction.document.reading import value_of
from pilotage.prediction.document.report import FORMAT, Report
from pilotage.whole_files import write_whole

__all__ = ["parse_report", "plain", "read_report", "report_text", "write_report"]


def read_report(path: Path) -> Report:
    """The report in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ReportError(f"{path} is not a report: it is not text in UTF-8.") from None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        return parse_report(text)
    except ReportError as error:
        raise ReportError(f"{path}: {error}") from None


def parse_report(text: str) -> Report:
    """The report in a text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"This is not JSON ({error}). Write a report with `pilotage predict --json`.") from None
    found = data.get("format") if isinstance(data, dict) else None
    if found != FORMAT:
        given = f"its format is {found!r}" if found is not None else "it has no format"
        raise ReportError(f"This version of Pilotage cannot read the report: {given}, expected {FORMAT!r}.")
    return value_of(Report, data)


def write_report(report: Report, path: Path) -> None:
    """Write a report to a file, complete or not at all."""
    write_whole(path, report_text(report).encode())


def report_text(report: Report) -> str:
    """A report as JSON."""
    return json.dumps(plain(report), allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"


def plain(value: Any) -> Any:
    """A value of the document as dictionaries, lists, texts and numbers."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value
