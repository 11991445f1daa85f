"""Metrics as CSV files, which a resumed run continues."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from pilotage import write_whole


class MetricTable:
    """A CSV file: a header, then a line per step."""

    def __init__(self, path: Path, *, resumed_at: int = 0) -> None:
        self._path = path
        self._kept = _rows_before(path, resumed_at)
        self._file: TextIO | None = None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add the line of a step."""
        if self._file is None:
            self._file = self._open(values)
        self._file.write(",".join([str(step), *(f"{value:.5f}" for value in values.values())]) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _open(self, values: Mapping[str, float]) -> TextIO:
        header = ",".join(["step", *values])
        columns = header.count(",")
        rows = [row for row in self._kept if row.count(",") == columns]
        write_whole(self._path, "".join(f"{line}\n" for line in (header, *rows)).encode())
        return self._path.open("a")


def _rows_before(path: Path, step: int) -> list[str]:
    """The lines of a table before a step, without a line that a crash truncated."""
    if step == 0 or not path.is_file():
        return []
    rows = []
    for line in path.read_text().split("\n")[1:-1]:
        with contextlib.suppress(ValueError):
            if int(line.split(",")[0]) < step:
                rows.append(line)
    return rows
