"""Batches of every form as tensors."""

import numpy as np
import torch

from cosmictagger.data.events import Batch, SparseBatch
from cosmictagger.devices.inputs import tensors


def test_dense_sparse_and_channels_last_batches_are_the_same_images():
    generator = np.random.default_rng(0)
    image = generator.random((2, 3, 4, 6), dtype=np.float32) * (generator.random((2, 3, 4, 6)) < 0.3)
    label = (image > 0.2).astype(np.uint8)
    rest = {"entries": np.arange(2), "event_ids": np.zeros((2, 3), np.int64)}
    index = np.flatnonzero(image)
    dense = Batch(image=image, label=label, **rest)
    sparse = SparseBatch(
        shape=image.shape, index=index, charge=image.ravel()[index], label=label.ravel()[index], **rest
    )
    wanted = torch.from_numpy(image), torch.from_numpy(label)
    for given in (dense, sparse, dense.channels_last()):
        for found, expected in zip(tensors(given, torch.device("cpu")), wanted, strict=True):
            assert torch.equal(found, expected)
