"""A picture of two runs: both curves of the loss, and how far they are apart."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

from pilotage.errors import ProofError
from pilotage.proof.comparison import Comparison, Verdict, relative
from pilotage.proof.proof import Proof
from pilotage.proof.steps import steps_of

__all__ = ["can_draw", "draw", "require_matplotlib"]

_BEFORE, _AFTER, _LIMIT = "#1f4e79", "#d95f02", "#999999"


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib(path: Path | None = None) -> None:
    """Raise if matplotlib is not installed, or draws no files of this kind."""
    if not can_draw():
        raise ProofError("A picture needs matplotlib: pip install matplotlib, or pass --picture off.")
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if path is not None and path.suffix and path.suffix[1:].lower() not in kinds:
        raise ProofError(f"A picture cannot be saved as {path.suffix!r}. Choose one of: {', '.join(sorted(kinds))}.")


def draw(proof: Proof, path: Path) -> None:
    """Draw a proof, or the loss of an audited script, into a file."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    comparison = proof.comparison
    if comparison is None:
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axes = figure.subplots()
        losses = [each.mean_loss for each in steps_of(proof.after.record)]
        axes.plot(range(1, len(losses) + 1), losses, color=_AFTER)
        axes.set(xlabel="update", ylabel="loss", title="Audit")
    else:
        figure = Figure(figsize=(8, 6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        _draw_losses(upper, comparison)
        _draw_difference(lower, comparison)
        lower.set_xlabel("update")
    FigureCanvasAgg(figure)
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise ProofError(f"The picture {path} cannot be written: {error}") from None


def _draw_losses(axes: Any, comparison: Comparison) -> None:
    steps = range(1, comparison.steps + 1)
    axes.plot(steps, comparison.before_losses, color=_BEFORE, linewidth=3, alpha=0.5, label="BEFORE")
    axes.plot(steps, comparison.after_losses, color=_AFTER, linewidth=1.2, label="AFTER")
    if comparison.step is not None:
        axes.axvline(comparison.step, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(
            f" {comparison.quantity}",
            (comparison.step, 1.0),
            xycoords=("data", "axes fraction"),
            va="top",
            fontsize=9,
        )
    axes.set_ylabel("loss")
    axes.set_title(_title(comparison))
    axes.legend(frameon=False)


def _draw_difference(axes: Any, comparison: Comparison) -> None:
    steps = list(range(1, comparison.steps + 1))
    scale = abs(comparison.before_losses[0]) if comparison.before_losses else 0.0
    pairs = zip(comparison.before_losses, comparison.after_losses, strict=True)
    gaps = [relative(left, right, scale) for left, right in pairs]
    floor = 1e-9
    drawn = [max(gap, floor) if math.isfinite(gap) else math.nan for gap in gaps]
    axes.semilogy(steps, drawn, color=_AFTER, marker=".", linewidth=1, label="losses apart")
    axes.semilogy(steps, comparison.allowed, color=_LIMIT, linestyle="--", label="rounding explains")
    if comparison.weights:
        ways = [max(way, floor) for way in comparison.weights.values()]
        axes.semilogy(
            list(comparison.weights),
            ways,
            color=_BEFORE,
            marker="o",
            markersize=4,
            linestyle="none",
            label="weights apart",
        )
    axes.set_ylim(bottom=floor / 2)
    axes.set_ylabel("relative difference\n(1e-9 stands for 0)")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9, ncols=3, borderaxespad=0.2)


def _title(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.SAME:
        return f"Same over {comparison.steps} updates"
    return comparison.sentence[:1].upper() + comparison.sentence[1:]
