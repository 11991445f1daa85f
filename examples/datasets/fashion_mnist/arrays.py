"""Pictures and labels as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class LabelledImages:
    """Images of shape (count, 28, 28) on a dark background, and their labels."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int | None) -> LabelledImages:
        """The first ``count`` of them, or all."""
        return LabelledImages(self.images[:count], self.labels[:count])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Splits:
    """The training set and the test set."""

    train: LabelledImages
    test: LabelledImages
    origin: str
    """Where they come from, for a report."""

    generated: bool = False
    """Whether they are generated and not Fashion-MNIST."""
