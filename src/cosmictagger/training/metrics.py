"""Accuracy and intersection over union, for each plane and on average.

Metrics follow the original's definitions, with two corrections: an image without labelled pixels has a
non-background accuracy of 1 instead of NaN, as an empty union has an IoU of 1, and averages divide by 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cosmictagger.training.loss import PLANES

NAMES = ("Total_Accuracy", "Non_Bkg_Accuracy", "Cosmic_IoU", "Neutrino_IoU", "mIoU")
KEYS = tuple(
    f"{place}/{name}" for place in ("Average", *(f"plane{plane}" for plane in range(PLANES))) for name in NAMES
)
"""The order of the metrics that `batch_metrics` returns."""


def predicted_classes(scores: Tensor) -> Tensor:
    """The class with the highest score per pixel, the first of equals: (M, H, W) from (M, 3, H, W)."""
    background, cosmic, neutrino = scores.unbind(1)
    best = torch.where(cosmic > background, 1, 0).to(torch.uint8)
    return torch.where(neutrino > torch.maximum(background, cosmic), torch.full_like(best, 2), best)


def batch_metrics(prediction: Tensor, labels: Tensor) -> Tensor:
    """All metrics named by `KEYS`, from stacked predictions and labels (3 N, H, W)."""
    per_image = image_metrics(prediction, labels)
    per_plane = per_image.mean(dim=1)
    return torch.cat((per_plane.mean(dim=0, keepdim=True), per_plane)).flatten()


def image_metrics(prediction: Tensor, labels: Tensor) -> Tensor:
    """The metrics of each image of each plane: (3, N, 5)."""
    right = prediction == labels
    marked = labels != 0
    cosmic = _union_ratio(prediction == 1, labels == 1)
    neutrino = _union_ratio(prediction == 2, labels == 2)
    accuracy = right.flatten(1).sum(1) / float(right[0].numel())
    non_background = _ratio((right & marked).flatten(1).sum(1), marked.flatten(1).sum(1))
    numbers = torch.stack((accuracy, non_background, cosmic, neutrino, 0.5 * (cosmic + neutrino)), dim=1)
    return numbers.view(PLANES, -1, len(NAMES))


def _union_ratio(one: Tensor, other: Tensor) -> Tensor:
    return _ratio((one & other).flatten(1).sum(1), (one | other).flatten(1).sum(1))


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part / whole.clamp(min=1), torch.ones_like(part, dtype=torch.float32))
