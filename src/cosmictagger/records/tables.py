"""Metrics as CSV files, which a resumed run continues."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from pilotage import write_whole

_METRICS = ("Total_Accuracy", "Cosmic_IoU", "Neutrino_IoU", "Non_Bkg_Accuracy", "mIoU")
_TIMES = ("global_step_per_sec", "images_per_second", "io_fetch_time", "step_time")
_PLACES = ("Average", "plane0", "plane1", "plane2")
COLUMNS = ("loss", *(f"{place}/{name}" for place in _PLACES for name in _METRICS), *_TIMES)
"""The original's columns in its order, for programs that count them; those that it does not have follow."""


class MetricTable:
    """A CSV file: a header, then a line per step."""

    def __init__(self, path: Path, *, resumed_at: int = 0) -> None:
        self._path = path
        self._kept = _rows_before(path, resumed_at)
        """The rows of an earlier run, by column: it may have been the original's, with other columns."""
        self._file: TextIO | None = None
        self._columns: tuple[str, ...] = ()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add the line of a step."""
        if self._file is None:
            self._file = self._open(values)
        numbers = {name: _number(name, value) for name, value in values.items()}
        self._file.write(_line(str(step), numbers, self._columns))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _open(self, values: Mapping[str, float]) -> TextIO:
        earlier = dict.fromkeys(name for _, row in self._kept for name in row if name not in values)
        self._columns = tuple(sorted((*values, *earlier), key=_place))
        lines = [",".join(["step", *self._columns]) + "\n"]
        lines += [_line(step, row, self._columns) for step, row in self._kept]
        write_whole(self._path, "".join(lines).encode())
        return self._path.open("a")


def _place(name: str) -> int:
    return COLUMNS.index(name) if name in COLUMNS else len(COLUMNS)


def _number(name: str, value: float) -> str:
    """A number as the original writes it; the rate, which the original does not write, with all its digits."""
    return f"{value:.6g}" if name == "learning_rate" else f"{value:.5f}"


def _line(step: str, row: Mapping[str, str], columns: Sequence[str]) -> str:
    """A row; columns that only other rows have stay empty."""
    return ",".join([step, *(row.get(name, "") for name in columns)]) + "\n"


def _rows_before(path: Path, step: int) -> list[tuple[str, dict[str, str]]]:
    """The rows of a table before a step, without a line that a crash truncated."""
    if step == 0 or not path.is_file():
        return []
    header, *lines = path.read_text().split("\n")[:-1] or [""]
    names, rows = header.split(",")[1:], []
    for line in lines:
        number, *values = line.split(",")
        with contextlib.suppress(ValueError):
            if int(number) < step:
                rows.append((number, dict(zip(names, values, strict=False))))
    return rows
