"""Scores with poptorch, for the test set and for your own pictures."""

import torch
from model import GarmentClassifier
from torch import Tensor
from torch.utils.data import TensorDataset

import pilotage
import poptorch


def scores(model: GarmentClassifier, images: Tensor) -> Tensor:
    """The log-probabilities of the ten classes for each image."""
    options = poptorch.Options()
    batch_size = even_batch_size(len(images))
    loader = poptorch.DataLoader(options, TensorDataset(images), batch_size=batch_size)
    inference_model = poptorch.inferenceModel(model.eval(), options=options)
    inference_model.compile(images[:batch_size])
    batches = pilotage.progress_bar(loader, description="evaluate", unit="call", leave=False)
    rows = [inference_model(batch) for (batch,) in batches]
    inference_model.detachFromDevice()
    return torch.cat(rows)


def even_batch_size(count: int, at_most: int = 100) -> int:
    """The largest batch size that divides ``count``.

    A compiled program takes batches of one size, and poptorch.DataLoader drops an incomplete last batch: with a batch
    size of 32, 16 of the 10,000 test images would be ignored.
    """
    return next(size for size in range(min(at_most, count), 0, -1) if count % size == 0)
