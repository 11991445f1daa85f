"""Drawing an event as a PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosmictagger.data.detector import COSMIC, NEUTRINO, PLANES
from cosmictagger.data.events import Array
from cosmictagger.data.truth import NeutrinoTruth
from cosmictagger.displays import rendering
from cosmictagger.displays.panels import Panel, colour_bar, draw, legend
from cosmictagger.displays.windows import Window, window_around
from cosmictagger.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PLANE_NAMES = ("plane 0 (induction)", "plane 1 (induction)", "plane 2 (collection)")
_PANEL_INCHES = (5.2, 3.25)
_DOTS_PER_INCH = 110
_HEAD_INCHES = 1.05


def draw_event(
    path: str | Path,
    image: Array,
    label: Array,
    prediction: Array | None = None,
    *,
    title: str = "",
    truth: NeutrinoTruth | None = None,
    downsample: int = 0,
) -> Path:
    """Draw charge, truth and the optional prediction of the planes (3, rows, columns), and a close-up."""
    _check_shapes(image, label, prediction)
    figure = _figure(_rows_of_panels(prediction))
    columns = [
        _plane_panels(image[plane], label[plane], None if prediction is None else prediction[plane], vertex, downsample)
        for plane, vertex in enumerate(_vertices(truth))
    ]
    rows = len(columns[0])
    axes = figure.subplots(rows, PLANES, squeeze=False)
    for plane, panels in enumerate(columns):
        axes[0][plane].set_title(_PLANE_NAMES[plane], color=rendering.INK, fontsize=13, pad=22)
        for row, panel in enumerate(panels):
            draw(axes[row][plane], panel)
    for row in range(rows):
        axes[row][0].set_ylabel("time", color=rendering.INK, fontsize=9, labelpad=1)
    _set_margins(figure)
    colour_bar(figure, axes[0][-1], columns)
    legend(figure, with_prediction=prediction is not None)
    figure.text(0.045, 1 - 0.32 / figure.get_figheight(), _headline(title, truth), color=rendering.INK, fontsize=16)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH, facecolor=rendering.PAPER)
    return path


def _plane_panels(
    image: Array, label: Array, prediction: Array | None, vertex: tuple[int, int] | None, downsample: int
) -> list[Panel]:
    """The panels of one plane from top to bottom."""
    whole, near = Window(0, 0, *image.shape), window_around(label, image, vertex, downsample)

    def panel(name: str, kind: str, shown: Array, window: Window) -> Panel:
        return Panel(name, kind, shown, window, downsample, vertex)

    classes = rendering.class_map(image, label)
    first = [panel("charge", "charge", image, whole).framed(near), panel("truth", "classes", classes, whole)]
    close = panel("charge near the neutrino", "charge", image, near)
    if prediction is None:
        return [*first, close, panel("truth near the neutrino", "classes", classes, near)]
    guess = panel("prediction", "classes", rendering.class_map(image, prediction), whole)
    agreement = rendering.agreement_map(image, label, prediction)
    compared = panel("prediction and truth near the neutrino", "agreement", agreement, near)
    return [*first, guess.noted(_overlaps(label, prediction)), close, compared]


def _overlaps(label: Array, prediction: Array) -> str:
    cosmic, neutrino = (rendering.overlap(label, prediction, which) for which in (COSMIC, NEUTRINO))
    return f"IoU cosmic {cosmic:.2f}, neutrino {neutrino:.2f}"


def _rows_of_panels(prediction: Array | None) -> int:
    return 4 if prediction is None else 5


def _figure(rows: int) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * PLANES + 0.6, height * rows + _HEAD_INCHES))
    FigureCanvasAgg(figure)
    return figure


def _set_margins(figure: Figure) -> None:
    tall = figure.get_figheight()
    figure.subplots_adjust(
        left=0.045, right=0.945, top=1 - (_HEAD_INCHES + 0.25) / tall, bottom=0.5 / tall, wspace=0.12, hspace=0.2
    )


def _headline(title: str, truth: NeutrinoTruth | None) -> str:
    parts = [title] if title else []
    if truth is not None:
        parts.append(f"{_flavour(truth)}, {truth.energy:.2f} GeV")
    return "   ".join(parts)


def _flavour(truth: NeutrinoTruth) -> str:
    return truth.flavour.replace("ν_e", "$\\nu_e$").replace("ν_μ", "$\\nu_\\mu$")


def _vertices(truth: NeutrinoTruth | None) -> list[tuple[int, int] | None]:
    if truth is None or truth.pixels is None:
        return [None] * PLANES
    return list(truth.pixels)


def _check_shapes(image: Array, label: Array, prediction: Array | None) -> None:
    given = [np.shape(each) for each in (image, label, prediction) if each is not None]
    if any(len(shape) != 3 or shape[0] != PLANES or shape != given[0] for shape in given):
        raise DataError(f"Image, label and prediction must have one shape (3, rows, columns), not {given}.")
