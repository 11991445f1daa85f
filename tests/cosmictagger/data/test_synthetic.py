import itertools

import numpy as np
import pytest

from cosmictagger.data.loader import Loader
from cosmictagger.data.synthetic import SyntheticEvents


def test_images_are_uniform_and_every_class_appears():
    batch = SyntheticEvents(2, shape=(64, 128)).dense_batch([0, 1])
    assert batch.image.shape == (2, 3, 64, 128)
    assert batch.image.dtype == np.float32
    assert 0 <= batch.image.min() < 0.01
    assert 0.99 < batch.image.max() < 1
    assert np.unique(batch.label).tolist() == [0, 1, 2]


def test_each_batch_starts_one_image_later():
    events = SyntheticEvents(3, shape=(8, 16))
    with Loader(events, minibatch_size=3, downsample=0, order="serial_access") as loader:
        batches = [next(loader) for _ in range(14)]
    for first, second in itertools.pairwise(batches):
        assert np.array_equal(first.image[1:], second.image[:-1])
    assert np.array_equal(batches[12].image, batches[0].image), "twelve images repeat"


def test_there_are_a_million_events():
    assert len(SyntheticEvents(20, shape=(8, 8))) == 1_000_000


def test_images_are_generated_at_their_downsampling():
    events = SyntheticEvents(1, downsample=2, shape=(64, 128))
    assert events.dense_batch([0], 2).image.shape == (1, 3, 16, 32)
    with pytest.raises(ValueError, match="generated for downsample 2"):
        events.dense_batch([0], 1)


def test_sparse_images_are_full():
    events = SyntheticEvents(1, shape=(8, 16))
    assert np.array_equal(events.batch([5]).dense().image, events.dense_batch([5]).image)
