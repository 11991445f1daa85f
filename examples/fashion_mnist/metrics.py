"""Accuracy, overall and for each class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, confusion_matrix
from torch import Tensor

from examples.datasets.fashion_mnist import CLASSES


@dataclass(frozen=True)
class Evaluation:
    """The result on a set of images."""

    accuracy: float
    confusion: NDArray[np.int64]
    """Rows are true classes, columns are predicted ones."""

    @property
    def images(self) -> int:
        return int(self.confusion.sum())

    @property
    def per_class(self) -> list[tuple[str, float]]:
        """The accuracy of each class; NaN for a class without images."""
        with np.errstate(invalid="ignore"):
            shares = self.confusion.diagonal() / self.confusion.sum(axis=1)
        return list(zip(CLASSES, shares.tolist(), strict=True))


def evaluation(labels: Tensor, scores: Tensor) -> Evaluation:
    """Compare the best score of each image with its label."""
    predicted = scores.argmax(dim=1)
    return Evaluation(
        accuracy_score(labels, predicted),
        confusion_matrix(labels, predicted, labels=range(len(CLASSES))),
    )
