"""Drawing how a training went: loss and overlaps by step."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.displays import rendering

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OVERLAPS = {
    "Average/Cosmic_IoU": ("cosmic IoU", rendering.COSMIC_COLOUR),
    "Average/Neutrino_IoU": ("neutrino IoU", rendering.NEUTRINO_COLOUR),
}
_INCHES = (11.0, 4.2)
_DOTS_PER_INCH = 110
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One column of a table, by step."""

    steps: Array
    values: Array


def column(path: Path, name: str) -> Series:
    """A column of a table of metrics; empty if there is no such table or column."""
    rows: list[tuple[int, float]] = []
    if path.is_file():
        with path.open() as file:
            rows = [(int(row["step"]), float(row[name])) for row in csv.DictReader(file) if row.get(name)]
    steps, values = zip(*rows, strict=True) if rows else ((), ())
    return Series(steps=np.array(steps), values=np.array(values))


def smoothed(values: Sequence[float] | Array, width: int) -> Array:
    """Means over a moving window, which is shorter at both ends."""
    given = np.asarray(values, np.float64)
    sums = np.concatenate(([0.0], np.cumsum(given)))
    first = np.clip(np.arange(len(given)) - width // 2, 0, None)
    last = np.clip(np.arange(len(given)) + width // 2 + 1, None, len(given))
    return np.asarray((sums[last] - sums[first]) / (last - first))


def sparkline(values: Sequence[float] | Array, width: int = 48) -> str:
    """The values as a line of bars for a terminal."""
    given = np.asarray(values, np.float64)
    if not len(given):
        return ""
    parts = np.array([part.mean() for part in np.array_split(given, min(width, len(given)))])
    low, high = parts.min(), parts.max()
    heights = (parts - low) / (high - low) if high > low else np.zeros(len(parts))
    return "".join(_BARS[round(each * (len(_BARS) - 1))] for each in heights)


def draw_training(path: Path, folder: Path, *, title: str = "") -> Path | None:
    """Draw the tables of a run's folder; returns None if it has none."""
    loss = column(folder / "train_metrics.csv", "loss")
    if not len(loss.steps):
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_loss(left, loss, column(folder / "test_metrics.csv", "loss"))
    _draw_overlaps(right, folder)
    figure.suptitle(title, color=rendering.INK, fontsize=14)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH, facecolor=rendering.PAPER)
    return path


def _draw_loss(axes: Axes, train: Series, test: Series) -> None:
    axes.plot(train.steps, train.values, color=rendering.FAINT, linewidth=1)
    mean = smoothed(train.values, max(len(train.values) // 12, 1))
    axes.plot(train.steps, mean, color=rendering.INK, linewidth=1.8, label="training, smoothed")
    if len(test.steps):
        axes.plot(test.steps, test.values, "o", color=rendering.INVENTED_COLOUR, label="held-out batches")
    _style(axes, "loss")
    axes.set_ylim(bottom=0)


def _draw_overlaps(axes: Axes, folder: Path) -> None:
    for name, (label, colour) in OVERLAPS.items():
        train, test = (column(folder / f"{kind}_metrics.csv", name) for kind in ("train", "test"))
        mean = smoothed(train.values, max(len(train.values) // 12, 1))
        axes.plot(train.steps, mean, color=colour, linewidth=1.8, label=label)
        if len(test.steps):
            axes.plot(test.steps, test.values, "o", color=colour, label=f"{label}, held-out batches")
    _style(axes, "intersection over union")
    axes.set_ylim(0, 1)


def _style(axes: Axes, name: str) -> None:
    axes.set_facecolor(rendering.PAPER)
    axes.set_xlabel("step", color=rendering.INK)
    axes.set_ylabel(name, color=rendering.INK)
    axes.tick_params(colors=rendering.INK)
    for spine in axes.spines.values():
        spine.set_color(rendering.FAINT)
    options: dict[str, Any] = {"frameon": False, "labelcolor": rendering.INK, "fontsize": 9}
    axes.legend(**options)
