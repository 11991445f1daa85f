"""An examination as text, with colours if rich is installed, or as JSON."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from pilotage.cli.doctor.finding import Examination, Finding, Section, Verdict
from pilotage.monitoring.plurals import pluralized

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

__all__ = ["as_json", "as_plain_text", "conclusion", "print_rich", "show"]

PLAIN_MARKS = {Verdict.GOOD: "ok", Verdict.ABSENT: "-", Verdict.WARNING: "!", Verdict.PROBLEM: "XX"}
RICH_MARKS = {
    Verdict.GOOD: "[green]✓[/]",
    Verdict.ABSENT: "[dim]·[/]",
    Verdict.WARNING: "[yellow]![/]",
    Verdict.PROBLEM: "[red]✗[/]",
}
RICH_REMEDIES = {Verdict.WARNING: "yellow", Verdict.PROBLEM: "red"}


def show(examination: Examination) -> None:
    """Print an examination in the best format for this terminal."""
    encodes_marks = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    if sys.stdout.isatty() and encodes_marks and importlib.util.find_spec("rich") is not None:
        from rich.console import Console

        print_rich(examination, Console(highlight=False))
        return
    text = as_plain_text(examination, width=shutil.get_terminal_size((100, 24)).columns)
    encoding = sys.stdout.encoding or "ascii"
    print(text.encode(encoding, errors="replace").decode(encoding))


def conclusion(examination: Examination) -> str:
    """One line: whether the engine can run, and the number of problems."""
    verdicts = Counter(finding.verdict for finding in examination.findings)
    kinds = ((Verdict.PROBLEM, "problem"), (Verdict.WARNING, "warning"))
    found = " and ".join(pluralized(verdicts[verdict], noun) for verdict, noun in kinds if verdicts[verdict])
    return ("Pilotage can run here" if examination.can_run else "Pilotage cannot run here") + (
        f": {found}." if found else "."
    )


def as_json(examination: Examination) -> str:
    """An examination as JSON."""
    sections = {section.title: [asdict(finding) for finding in section.findings] for section in examination.sections}
    return json.dumps({"can_run": examination.can_run, "sections": sections}, indent=2, ensure_ascii=False)


def as_plain_text(examination: Examination, *, width: int) -> str:
    """An examination as plain text."""
    margin = 5 + _name_width(examination) + 2
    lines: list[str] = []
    for section in examination.sections:
        lines += [section.title]
        for finding in section.findings:
            start = f"  {PLAIN_MARKS[finding.verdict]:<2} {finding.name}".ljust(margin)
            lines += _wrapped(finding.value, start, margin, width)
            lines += _wrapped(finding.remedy, " " * margin + "> ", margin + 2, width) if finding.remedy else []
        lines += [""]
    return "\n".join([*lines, conclusion(examination)])


def print_rich(examination: Examination, console: Console) -> None:
    """Print an examination with colours and symbols."""
    from rich.padding import Padding

    width = _name_width(examination)
    for section in examination.sections:
        console.print(f"[bold]{section.title}[/]")
        console.print(Padding(_table(section, width), (0, 0, 1, 2)))
    colour = "green" if examination.can_run else "red"
    console.print(f"[bold {colour}]{conclusion(examination)}[/]")


def _table(section: Section, name_width: int) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(width=name_width, no_wrap=True)
    table.add_column(overflow="fold")
    for finding in section.findings:
        table.add_row(RICH_MARKS[finding.verdict], finding.name, _rich_value(finding))
    return table


def _rich_value(finding: Finding) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    value = Text(finding.value, style="dim" if finding.verdict is Verdict.ABSENT else "")
    if not finding.remedy:
        return Group(value)
    style = RICH_REMEDIES.get(finding.verdict, "dim")
    remedy = Table.grid(padding=(0, 1, 0, 0))
    remedy.add_row(Text("→", style=style), Text(finding.remedy, style=style, overflow="fold"))
    return Group(value, remedy)


def _name_width(examination: Examination) -> int:
    return max(len(finding.name) for finding in examination.findings)


def _wrapped(text: str, start: str, margin: int, width: int) -> list[str]:
    # Keep paths and commands whole, so that they can be copied.
    return textwrap.wrap(
        text,
        width=max(width, margin + 40),
        initial_indent=start,
        subsequent_indent=" " * margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
