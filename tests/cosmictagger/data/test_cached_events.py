import numpy as np
import pytest

from cosmictagger.data.cached_events import CachedEvents
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader
from cosmictagger.errors import DataError


def test_cached_events_equal_the_files_events(generated):
    held = CachedEvents(generated, downsample=2)
    for entries in ([0, 3], [3, 1, 0]):
        mine, theirs = held.batch(entries, 2), generated.batch(entries, 2)
        assert mine.shape == theirs.shape
        for name in ("index", "charge", "label", "entries", "event_ids"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name))
    assert np.array_equal(held.dense_batch([4], 2).image, generated.dense_batch([4], 2).image)


def test_an_event_is_read_once(generated_path):
    with EventFile(generated_path) as file:
        held = CachedEvents(file, downsample=3)
        expected = held.batch([0, 1], 3)
    assert np.array_equal(held.batch([0, 1], 3).charge, expected.charge), "the file is closed by now"


def test_a_transformed_batch_does_not_change_the_cache(generated):
    held = CachedEvents(generated, downsample=3)
    before = held.batch([0], 3).charge
    with Loader(held, minibatch_size=1, downsample=3, order="serial_access", sparse=True, img_transform=True) as loader:
        assert np.array_equal(next(loader).charge, np.log1p(before))
    assert np.array_equal(held.batch([0], 3).charge, before)


def test_another_downsampling_is_refused(generated):
    with pytest.raises(DataError, match="cached at downsample 2, not at 1"):
        CachedEvents(generated, downsample=2).batch([0], 1)
