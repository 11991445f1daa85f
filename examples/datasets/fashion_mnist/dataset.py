"""Fashion-MNIST as a dataset for torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from examples.datasets.fashion_mnist.arrays import LabelledImages
from examples.datasets.fashion_mnist.files import CLASSES
from examples.datasets.fashion_mnist.loading import Say, load, say_on_stderr


class FashionMNIST(TensorDataset):
    """Images of shape (1, 28, 28) and their labels, as two tensors: normalised, or raw bytes."""

    classes: tuple[str, ...] = CLASSES

    def __init__(self, pictures: LabelledImages, *, raw: bool = False) -> None:
        grey = torch.tensor(pictures.images)
        self.images = grey.unsqueeze(-3) if raw else normalised(grey)
        self.labels = torch.tensor(pictures.labels, dtype=torch.int64)
        super().__init__(self.images, self.labels)

    @classmethod
    def splits(
        cls, data: str | Path | None = None, *, limit: int | None = None, raw: bool = False, say: Say = say_on_stderr
    ) -> tuple[Self, Self]:
        """The training set and the test set, as ``load`` finds them.

        ``raw`` keeps bytes, a quarter of the data to move, for a model with `pilotage.Normalized` on the device.
        """
        found = load(data, limit=limit, say=say)
        return cls(found.train, raw=raw), cls(found.test, raw=raw)

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, ...]]:
        """Several samples, with one indexing operation per tensor."""
        chosen = torch.as_tensor(indices)
        return list(zip(self.images[chosen], self.labels[chosen], strict=True))

    def fetch_batch(self, indices: Sequence[int]) -> list[Tensor]:
        """A whole batch, as collation would make it from single samples."""
        chosen = torch.as_tensor(indices)
        return [self.images.index_select(0, chosen), self.labels.index_select(0, chosen)]


def normalised(grey: Tensor) -> Tensor:
    """Bytes of shape (..., 28, 28) as floats from -1 to 1, with a channel axis.

    The same operations as torchvision's ``ToTensor`` and ``Normalize((0.5,), (0.5,))``, so that the result is the same
    to the last bit.
    """
    return grey.unsqueeze(-3).to(torch.float32).div_(255).sub_(0.5).div_(0.5)
