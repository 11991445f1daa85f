"""How well the network does, class by class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, confusion_matrix
from torch import Tensor

from examples.datasets.fashion_mnist import CLASSES


@dataclass(frozen=True)
class Evaluation:
    """The verdict over a set of pictures."""

    accuracy: float
    confusion: NDArray[np.int64]
    """Row: what it is. Column: what the network says."""

    @property
    def images(self) -> int:
        return int(self.confusion.sum())

    @property
    def per_class(self) -> list[tuple[str, float]]:
        """The share of each class that is recognised; NaN where the set has none of it."""
        with np.errstate(invalid="ignore"):
            shares = self.confusion.diagonal() / self.confusion.sum(axis=1)
        return list(zip(CLASSES, shares.tolist(), strict=True))


def evaluation(labels: Tensor, scores: Tensor) -> Evaluation:
    """Compare the best score of each picture with its label."""
    predicted = scores.argmax(dim=1)
    return Evaluation(
        accuracy_score(labels, predicted),
        confusion_matrix(labels, predicted, labels=range(len(CLASSES))),
    )
