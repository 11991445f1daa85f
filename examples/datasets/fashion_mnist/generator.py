"""Generated garments that replace Fashion-MNIST if it is not available."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from examples.datasets.fashion_mnist.arrays import LabelledImages, Splits
from examples.datasets.fashion_mnist.canvas import Canvas, Numbers, posed
from examples.datasets.fashion_mnist.files import SIDE
from examples.datasets.fashion_mnist.garments import GARMENTS, Garment

CHUNK = 500
"""Images per random stream; a longer set starts with the images of a shorter one."""


def generate(*, train: int = 60_000, test: int = 10_000, seed: int = 0) -> Splits:
    """Generated garments, all ten kinds equally often; the same seed gives the same images."""
    return Splits(
        train=garments(train, (seed, 0)),
        test=garments(test, (seed, 1)),
        origin="drawn by a program: this is not Fashion-MNIST",
        generated=True,
    )


def garments(count: int, stream: tuple[int, ...]) -> LabelledImages:
    """The first ``count`` images of an endless stream."""
    if count == 0:
        return LabelledImages(np.empty((0, SIDE, SIDE), np.uint8), np.empty(0, np.uint8))
    chunks = [_chunk(np.random.default_rng((*stream, index))) for index in range(-(-count // CHUNK))]
    images = np.concatenate([images for images, _ in chunks])
    labels = np.concatenate([labels for _, labels in chunks])
    return LabelledImages(images, labels).first(count)


def _chunk(random: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    each = CHUNK // len(GARMENTS)
    images = np.concatenate([_pictures(garment, each, random) for garment in GARMENTS])
    labels = np.repeat(np.arange(len(GARMENTS), dtype=np.uint8), each)
    order = random.permutation(CHUNK)
    return images[order], labels[order]


def _pictures(garment: Garment, count: int, random: np.random.Generator) -> NDArray[np.uint8]:
    canvas = posed(count, random)
    grey = garment(canvas) * _cloth(canvas)
    grey = grey * canvas.draw(0.35, 1.0) + grey * _grain(canvas)
    # Real photographs have a black background, so faint traces are removed.
    grey = np.where(grey < 0.02, 0, grey)
    return np.rint(np.clip(grey, 0, 1) * 255).astype(np.uint8)


def _cloth(canvas: Canvas) -> Numbers:
    """Folds everywhere, and on some of the pieces stripes or checks."""
    draw = canvas.draw
    folds = 1 - draw(0, 0.25) * np.sin(canvas.x * draw(2, 9) + canvas.y * draw(-4, 4) + draw(0, 6)) ** 2
    across = 1 + np.sign(np.sin(canvas.y * draw(8, 24) + draw(0, 6))) * canvas.sometimes(0.2) * draw(0.1, 0.5)
    down = 1 + np.sign(np.sin(canvas.x * draw(8, 24) + draw(0, 6))) * canvas.sometimes(0.15) * draw(0.1, 0.5)
    return np.asarray(folds * across * down / (1 + 0.3 * (across > 1) + 0.3 * (down > 1)))


def _grain(canvas: Canvas) -> Numbers:
    noise = canvas.random.standard_normal(canvas.x.shape, dtype=np.float32)
    return noise * canvas.draw(0.01, 0.09)
