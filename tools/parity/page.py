"""The parity page, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.parity import choices, executors, loading, operations, optimizers, package, settings, surroundings
from tools.parity.option_meanings import OPTION_MEANINGS, Meaning
from tools.parity.rows import Row, Sort, Status, Table

__all__ = ["PAGE", "PARTS", "counts", "page"]

PAGE = Path(__file__).parents[2] / "docs/poptorch-parity.md"

PARTS: dict[str, tuple[Table, ...]] = {
    "Package": package.TABLES,
    "Enums": choices.TABLES,
    "Options and strategies": settings.TABLES,
    "Data loading": loading.TABLES,
    "Wrapped models": executors.TABLES,
    "Optimizers": optimizers.TABLES,
    "Operations": operations.TABLES,
    "Environment, profiling and popdist": surroundings.TABLES,
}

_HEAD = """\
# PopTorch, name by name

Every public name of PopTorch 3.4, and its status here: it *works*, *works differently* (how), comes *later*, or is
*absent* (why). `python -m tools.parity` writes this page from the rows in `tools/parity`; do not edit it by hand.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, _summary()]
    for title, tables in PARTS.items():
        parts += [f"## {title}\n", *map(_table, tables)]
    return "\n".join([*parts, _own()])


def counts(tables: Iterable[Table]) -> Counter[Status]:
    """How many rows have each status."""
    return Counter(row.status for table in tables for row in table.rows)


def _summary() -> str:
    lines = [_line("", *(status.value for status in Status)), _line("---", *("---:" for _ in Status))]
    for title, tables in PARTS.items():
        found = counts(tables)
        lines.append(_line(title, *(str(found[status]) for status in Status)))
    total = counts(table for tables in PARTS.values() for table in tables)
    lines.append(_line("**all**", *(f"**{total[status]}**" for status in Status)))
    return "\n".join([*lines, ""])


def _table(table: Table) -> str:
    lines = [f"### {table.title}\n", _line("name", "status"), _line("---", "---")]
    return "\n".join([*lines, *(_line(_name(table, row), _status(row)) for row in table.rows), ""])


def _name(table: Table, row: Row) -> str:
    if table.sort is Sort.BEHAVIOURS:
        return row.name
    return f"`{row.name}`" if table.of == "poptorch" else f"`{table.of}.{row.name}`"


def _status(row: Row) -> str:
    if not row.remark:
        return row.status.value
    if row.status in (Status.DIFFERS, Status.ABSENT):
        return f"{row.status.value} ({row.remark})"
    return f"{row.status.value}: {row.remark}"


def _own() -> str:
    own = [option for option in OPTION_MEANINGS if option.meaning is Meaning.OWN]
    lines = [f"- `Options.{option.path}`: {option.remark}" for option in own]
    lines.append("- `implementCustomOp`: Registers a Python function as a custom op.")
    lines.append("- `load(model=)`: An instance of the model's class, to be used as `.model`.")
    lines.append(
        "- `load(trusted=, allow_operations=, max_memory=)`, the same in `loadExecutable`: What the program of a "
        "file may do."
    )
    return "\n".join(["## Not in PopTorch\n", *lines, ""])


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
