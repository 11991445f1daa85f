"""The three figures that a run saves."""

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from metrics import Evaluation
from predict import Prediction
from sklearn.metrics import ConfusionMatrixDisplay

from examples.datasets.fashion_mnist import CLASSES, LabelledImages
from pilotage.whole_files import write_whole

INK, QUIET, ACCENT = "#1f2933", "#9aa5b1", "#2563a8"
SAMPLES_PER_CLASS = 12
VERDICT_WIDTH = 1.15
"""Width of the bar chart relative to a picture."""


def save_samples(pictures: LabelledImages, path: Path) -> None:
    """Save a row of images for each class."""
    figure = Figure(figsize=(9.6, 8.4), layout="constrained")
    figure.suptitle("Training images", fontsize=15, color=INK)
    grid = figure.subplots(len(CLASSES), SAMPLES_PER_CLASS)
    for row, name in enumerate(CLASSES):
        chosen = pictures.images[pictures.labels == row][:SAMPLES_PER_CLASS]
        for column, axes in enumerate(grid[row]):
            _bare(axes)
            if column < len(chosen):
                axes.imshow(chosen[column], cmap="gray", vmin=0, vmax=255)
        grid[row][0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=11, color=INK, labelpad=6)
    _save(figure, path)


def save_confusion(result: Evaluation, path: Path) -> None:
    """Save the confusion matrix."""
    figure = Figure(figsize=(8.4, 7.6), layout="constrained")
    axes = figure.subplots()
    display = ConfusionMatrixDisplay(result.confusion, display_labels=CLASSES)
    display.plot(ax=axes, cmap="Blues", xticks_rotation=40, colorbar=False, values_format="d")
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("right")
        label.set_rotation_mode("anchor")
    for text in display.text_.ravel():
        text.set_fontsize(9)
        if text.get_text() == "0":
            text.set_alpha(0.25)
    axes.set_title(
        f"{result.accuracy:.2%} of {result.images:,} test images are classified correctly",
        fontsize=14,
        color=INK,
        pad=12,
    )
    axes.set_xlabel("predicted class", color=INK, labelpad=10)
    axes.set_ylabel("true class", color=INK, labelpad=10)
    _save(figure, path)


def save_before_after(predictions: list[Prediction], path: Path) -> None:
    """Save each picture, the network's input made from it, and the prediction."""
    figure = Figure(figsize=(10.5, 3.6 * len(predictions)), layout="constrained")
    grid = figure.subplots(len(predictions), 3, squeeze=False, width_ratios=(1, 1, VERDICT_WIDTH))
    for prediction, (before, after, verdict) in zip(predictions, grid, strict=True):
        for axes in (before, after):
            _bare(axes)
            # Square axes for any picture, so that all titles of a row are at the same height.
            axes.set(box_aspect=1, adjustable="datalim")
        before.imshow(prediction.picture.original)
        before.set_title("before", color=INK)
        before.set_xlabel(prediction.picture.path.name, color=QUIET, fontsize=9)
        after.imshow(prediction.picture.grey, cmap="gray", vmin=0, vmax=255)
        after.set_title("after", color=INK)
        after.set_xlabel("28 × 28, grey, dark background", color=QUIET, fontsize=9)
        _draw_verdict(verdict, prediction)
        verdict.set_box_aspect(1 / VERDICT_WIDTH)
    _save(figure, path)


def _draw_verdict(axes: Axes, prediction: Prediction) -> None:
    best = int(np.argmax(prediction.probabilities))
    colours = [ACCENT if index == best else "#cbd5e1" for index in range(len(CLASSES))]
    axes.barh(CLASSES, prediction.probabilities, color=colours, height=0.7)
    for index, probability in enumerate(prediction.probabilities):
        axes.text(min(probability, 1) + 0.02, index, f"{probability:.1%}", va="center", fontsize=8, color=INK)
    axes.set_title(prediction.name, color=ACCENT, fontweight="bold")
    axes.set_xlim(0, 1.18)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=9, labelcolor=INK)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    # Drawn in memory first, so that an interrupted run never leaves a partial file.
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=130)
    write_whole(path, drawn.getvalue())
