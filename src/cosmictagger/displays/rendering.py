"""Colour maps of classes and predictions."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.detector import COSMIC, NEUTRINO
from cosmictagger.data.events import Array

PAPER = "#0d1017"
INK = "#d7dce5"
FAINT = "#333b4d"
COSMIC_COLOUR = "#3f9bff"
NEUTRINO_COLOUR = "#ffb000"
MISSED_COLOUR = "#ff4fa3"
INVENTED_COLOUR = "#7ddc5a"

CLASS_COLOURS = (PAPER, FAINT, COSMIC_COLOUR, NEUTRINO_COLOUR)
"""Empty, background, cosmic, neutrino."""
AGREEMENT_COLOURS = (PAPER, FAINT, COSMIC_COLOUR, NEUTRINO_COLOUR, MISSED_COLOUR, INVENTED_COLOUR)
"""The class colours where prediction and truth agree, then missed and invented neutrinos."""


def pooled(image: Array, factor: int) -> Array:
    """Max-pool an image, so that tracks stay connected at any size."""
    if factor <= 1:
        return image
    height, width = (-(-side // factor) * factor for side in image.shape)
    padded = np.zeros((height, width), image.dtype)
    padded[: image.shape[0], : image.shape[1]] = image
    return np.asarray(padded.reshape(height // factor, factor, width // factor, factor).max(axis=(1, 3)))


def class_map(image: Array, classes: Array) -> Array:
    """Indices into ``CLASS_COLOURS`` for a plane."""
    return np.where(classes > 0, classes + 1, (image > 0).astype(np.uint8)).astype(np.uint8)


def agreement_map(image: Array, label: Array, prediction: Array) -> Array:
    """Indices into ``AGREEMENT_COLOURS``: where prediction and truth differ about the neutrino."""
    shown = class_map(image, np.where(label == COSMIC, COSMIC, 0))
    shown[(label == NEUTRINO) & (prediction == NEUTRINO)] = 3
    shown[(label == NEUTRINO) & (prediction != NEUTRINO)] = 4
    shown[(label != NEUTRINO) & (prediction == NEUTRINO)] = 5
    return shown


def overlap(label: Array, prediction: Array, which: int) -> float:
    """Intersection over union of one class; 1 if neither has it."""
    mine, theirs = label == which, prediction == which
    union = np.count_nonzero(mine | theirs)
    return np.count_nonzero(mine & theirs) / union if union else 1.0
