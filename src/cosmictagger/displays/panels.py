"""The panels of a display, its colour bar and its legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cosmictagger.data.events import Array
from cosmictagger.displays import rendering
from cosmictagger.displays.windows import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

_MOST_COLUMNS = 560
"""Columns that a panel can resolve; wider images are pooled."""
_CHARGE_COLOURS = "inferno"
_LEAST_CHARGE, _MOST_CHARGE = 2.0, 300.0
"""The scale starts below the threshold of 5, so that the weakest pixels are visible."""
_SMALL = 9


@dataclass(frozen=True, eq=False, kw_only=False, slots=True)
class Panel:
    """The content of a panel."""

    name: str
    kind: str
    """charge, classes or agreement."""
    image: Array
    window: Window
    downsample: int = 0
    vertex: tuple[int, int] | None = None
    """On the full grid."""
    frame: Window | None = None
    """A rectangle to mark."""
    note: str = ""

    def framed(self, frame: Window) -> Panel:
        """The same panel with a rectangle around the part that another panel enlarges."""
        return replace(self, frame=frame)

    def noted(self, note: str) -> Panel:
        """The same panel with a note."""
        return replace(self, note=note)


def draw(axes: Axes, panel: Panel) -> None:
    """Draw a panel."""
    part = panel.window.of(panel.image)
    shown = rendering.pooled(part, -(-part.shape[1] // _MOST_COLUMNS))
    scale = 1 << panel.downsample
    left, top = panel.window.left * scale, panel.window.top * scale
    extent = (left, left + panel.window.width * scale, top + panel.window.height * scale, top)
    axes.imshow(shown, extent=extent, aspect="auto", interpolation="nearest", **_colours(panel))
    _style_axes(axes, panel)
    if panel.frame is not None:
        _mark_frame(axes, panel.frame, scale)
    if panel.vertex is not None and panel.kind != "charge":
        _mark_vertex(axes, panel.vertex, extent)


def colour_bar(figure: Figure, axes: Axes, columns: Sequence[Sequence[Panel]]) -> None:
    """Draw the scale of charges beside the first row."""
    from matplotlib.cm import ScalarMappable

    box = axes.get_position()
    beside = figure.add_axes((box.x1 + 0.008, box.y0, 0.008, box.height))
    bar = figure.colorbar(ScalarMappable(_charge_scale(columns[0][0].downsample), _CHARGE_COLOURS), cax=beside)
    bar.set_label("charge", color=rendering.INK, fontsize=_SMALL + 1)
    bar.outline.set_edgecolor(rendering.FAINT)
    beside.tick_params(colors=rendering.INK, labelsize=_SMALL, which="both")


def legend(figure: Figure, *, with_prediction: bool) -> None:
    """Draw the legend."""
    from matplotlib.patches import Patch

    meanings = [
        (rendering.FAINT, "background"),
        (rendering.COSMIC_COLOUR, "cosmic"),
        (rendering.NEUTRINO_COLOUR, "neutrino"),
    ]
    if with_prediction:
        meanings += [(rendering.MISSED_COLOUR, "neutrino missed"), (rendering.INVENTED_COLOUR, "neutrino invented")]
    figure.legend(
        handles=[Patch(facecolor=colour, label=text) for colour, text in meanings],
        loc="upper right",
        bbox_to_anchor=(0.945, 1 - 0.12 / figure.get_figheight()),
        ncols=len(meanings),
        frameon=False,
        labelcolor=rendering.INK,
        fontsize=12,
    )


def _colours(panel: Panel) -> dict[str, Any]:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    if panel.kind == "charge":
        return {
            "cmap": colormaps[_CHARGE_COLOURS].with_extremes(under=rendering.PAPER),
            "norm": _charge_scale(panel.downsample),
        }
    colours = rendering.CLASS_COLOURS if panel.kind == "classes" else rendering.AGREEMENT_COLOURS
    return {"cmap": ListedColormap(list(colours)), "vmin": -0.5, "vmax": len(colours) - 0.5}


def _charge_scale(downsample: int) -> LogNorm:
    from matplotlib.colors import LogNorm

    # A downsampled pixel averages over empty ones, so charges of thin tracks fall with the block size.
    return LogNorm(_LEAST_CHARGE * 0.25**downsample, _MOST_CHARGE * 0.6**downsample)


def _style_axes(axes: Axes, panel: Panel) -> None:
    axes.set_facecolor(rendering.PAPER)
    axes.tick_params(colors=rendering.INK, labelsize=_SMALL)
    axes.locator_params(nbins=5)
    axes.set_xlabel("wire", color=rendering.INK, fontsize=_SMALL, labelpad=1)
    for spine in axes.spines.values():
        spine.set_color(rendering.FAINT)
    axes.text(0.0, 1.02, panel.name, transform=axes.transAxes, color=rendering.INK, fontsize=11)
    if panel.note:
        axes.text(1.0, 1.02, panel.note, transform=axes.transAxes, color=rendering.INK, fontsize=10, ha="right")


def _mark_frame(axes: Axes, frame: Window, scale: int) -> None:
    from matplotlib.patches import Rectangle

    corner = (frame.left * scale, frame.top * scale)
    axes.add_patch(
        Rectangle(corner, frame.width * scale, frame.height * scale, fill=False, edgecolor=rendering.INK, linewidth=0.9)
    )


def _mark_vertex(axes: Axes, vertex: tuple[int, int], extent: tuple[int, int, int, int]) -> None:
    row, column = vertex
    inside = extent[0] <= column < extent[1] and extent[3] <= row < extent[2]
    if inside:
        axes.plot(
            [column + 0.5],
            [row + 0.5],
            marker="o",
            markersize=13,
            fillstyle="none",
            color=rendering.INK,
            markeredgewidth=0.9,
        )
        axes.set_xlim(extent[0], extent[1])
        axes.set_ylim(extent[2], extent[3])
