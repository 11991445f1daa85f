"""Padding filled pixels to one length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.data.events import PaddedBatch, SparseBatch
from cosmictagger.data.loader import Loader
from cosmictagger.data.padding import padded
from cosmictagger.devices.inputs import tensors
from cosmictagger.errors import DataError

SHAPE = (3, 3, 4, 5)


def sparse(counts, seed=0):
    generator = np.random.default_rng(seed)
    size = int(np.prod(SHAPE[1:]))
    places = [generator.permutation(size)[:count] + number * size for number, count in enumerate(counts)]
    index = np.concatenate(places).astype(np.int64)
    charge, label = generator.random(len(index), np.float32), generator.integers(0, 3, len(index)).astype(np.uint8)
    return SparseBatch(SHAPE, index, charge, label, np.arange(5, 8), np.zeros((3, 3), np.int64))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 60), min_size=3, max_size=3), st.integers(0, 99))
def test_padded_pixels_are_the_same_images(counts, seed):
    batch = sparse(counts, seed)
    full = padded(batch, 60)
    assert (full.index.dtype, full.index.shape) == (np.int32, (3, 60))
    image, label = tensors(full, torch.device("cpu"))
    assert np.array_equal(image.numpy(), batch.dense().image)
    assert np.array_equal(label.numpy(), batch.dense().label)


def test_an_event_with_too_many_pixels_is_named():
    with pytest.raises(DataError, match="Event 6 has 9 filled pixels, but the file promises at most 8"):
        padded(sparse([3, 9, 0]), 8)


def test_a_loader_pads_to_the_largest_event_of_the_file(generated):
    settings = {"minibatch_size": 2, "downsample": 1, "seed": 1}
    with (
        Loader(generated, sparse=True, pixels=generated.max_pixels, **settings) as sending,
        Loader(generated, **settings) as dense,
    ):
        for _ in range(2):
            full, batch = next(sending), next(dense)
            assert isinstance(full, PaddedBatch)
            assert full.index.shape == (2, generated.max_pixels)
            image, label = tensors(full, torch.device("cpu"))
            assert np.array_equal(image.numpy(), batch.image)
            assert np.array_equal(label.numpy(), batch.label)
            assert np.array_equal(full.entries, batch.entries)
