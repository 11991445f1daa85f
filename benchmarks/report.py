"""Results as a table on the terminal and as JSON."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    """Relative to the row that the table compares with; above 1 is better."""


@dataclass(frozen=True)
class Table:
    """The results of one benchmark."""

    title: str
    command: str
    rows: list[Row]
    verdict: str
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [self.title, "-" * len(self.title)]
        for row in self.rows:
            ratio = "" if row.ratio is None else f"   x {row.ratio:.2f}"
            lines.append(f"{row.name:<{width}}  {row.value:>12,.1f} {row.unit}{ratio}")
        return "\n".join([*lines, self.verdict, f"(printed by: {self.command})"])


def machine(device: str) -> dict[str, Any]:
    """The machine that was measured."""
    card = torch.cuda.get_device_name() if device == "cuda" else None
    return {
        "device": card or _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def save(tables: list[Table], device: str, path: Path) -> None:
    """Write the results as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(device), "tables": [asdict(table) for table in tables]}
    path.write_text(json.dumps(content, indent=2) + "\n")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
