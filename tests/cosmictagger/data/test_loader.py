import itertools
import json

import numpy as np
import pytest

from cosmictagger.data.events import Batch, SparseBatch
from cosmictagger.data.loader import Loader
from cosmictagger.data.orders import ORDERS
from cosmictagger.errors import DataError


def take(loader, count):
    return list(itertools.islice(loader, count))


def drawn(loader, count):
    return [batch.entries.tolist() for batch in take(loader, count)]


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_a_resumed_sequence_continues_exactly(generated, order):
    settings = {"minibatch_size": 2, "downsample": 5, "order": order}
    with Loader(generated, seed=3, **settings) as undisturbed:
        expected = take(undisturbed, 9)
    with Loader(generated, seed=3, **settings) as first:
        before = take(first, 4)
        state = json.loads(json.dumps(first.state()))
    with Loader(generated, seed=77, **settings) as second:
        take(second, 2)
        second.restore(state)
        assert second.state() == state
        found = before + take(second, 5)
    for batch, other in zip(expected, found, strict=True):
        assert np.array_equal(batch.entries, other.entries)
        assert np.array_equal(batch.image, other.image)


def test_prefetched_batches_do_not_count_as_seen(generated):
    with Loader(generated, minibatch_size=2, downsample=6, prefetch=4, order="serial_access") as loader:
        assert (loader.state()["batches"], loader.state()["position"]) == (0, 0)
        take(loader, 3)
        assert {name: loader.state()[name] for name in ("batches", "epoch", "position")} == {
            "batches": 3,
            "epoch": 1,
            "position": 1,
        }


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_threads_does_not_change_results(generated, workers):
    with Loader(generated, minibatch_size=1, downsample=4, seed=5, workers=workers, prefetch=workers) as loader:
        images = [batch.image for batch in take(loader, 6)]
    with Loader(generated, minibatch_size=1, downsample=4, seed=5, workers=2) as loader:
        assert all(np.array_equal(batch.image, image) for batch, image in zip(take(loader, 6), images, strict=True))


def test_a_sparse_batch_becomes_the_dense_one(generated):
    with (
        Loader(generated, minibatch_size=2, seed=1, sparse=True, img_transform=True) as sparse,
        Loader(generated, minibatch_size=2, seed=1, img_transform=True) as dense,
    ):
        filled, batch = next(sparse), next(dense)
        assert isinstance(filled, SparseBatch)
        assert isinstance(batch, Batch)
        assert filled.shape == batch.image.shape == sparse.shape == (2, 3, 640, 1024)
        assert np.array_equal(filled.dense().image, batch.image)


def test_the_transform_takes_the_logarithm_once(generated):
    with (
        Loader(generated, minibatch_size=1, downsample=3, seed=1, img_transform=True) as transformed,
        Loader(generated, minibatch_size=1, downsample=3, seed=1) as plain,
    ):
        assert np.array_equal(next(transformed).image, np.log1p(next(plain).image))


def test_channels_can_come_first_or_last(generated):
    with (
        Loader(generated, minibatch_size=1, downsample=3, seed=1, data_format="channels_last") as last,
        Loader(generated, minibatch_size=1, downsample=3, seed=1) as first,
    ):
        assert np.array_equal(np.moveaxis(next(last).image, 3, 1), next(first).image)


def test_processes_divide_each_batch(generated):
    settings = {"minibatch_size": 4, "downsample": 6, "seed": 9, "order": "shuffle"}
    with Loader(generated, **settings) as alone:
        whole = drawn(alone, 4)
    parts = []
    for rank in range(2):
        with Loader(generated, rank=rank, size=2, **settings) as loader:
            assert loader.shape[0] == 2
            parts.append(drawn(loader, 4))
    assert [first + second for first, second in zip(*parts, strict=True)] == whole


def test_a_seed_of_zero_comes_from_the_clock_and_is_stored(generated):
    with (
        Loader(generated, minibatch_size=1, downsample=7) as one,
        Loader(generated, minibatch_size=1, downsample=7) as other,
    ):
        assert one.seed != other.seed
        assert one.state()["seed"] == one.seed > 0


class Failing:
    shape = (64, 64)

    def __len__(self):
        return 10

    def dense_batch(self, entries, downsample=0):
        raise DataError(f"event {entries[0]} is damaged")

    batch = dense_batch


def test_an_error_in_a_thread_reaches_the_caller():
    with (
        Loader(Failing(), minibatch_size=1, order="serial_access") as loader,
        pytest.raises(DataError, match="event 0 is damaged"),
    ):
        next(loader)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"minibatch_size": 6}, "minibatch_size=6"),
        ({"minibatch_size": 0}, "minibatch_size=0"),
        ({"minibatch_size": 1, "downsample": 9}, "downsample=9"),
        ({"minibatch_size": 1, "order": "sorted"}, "No order of entries named 'sorted'"),
        ({"minibatch_size": 1, "data_format": "nchw"}, "No data format named 'nchw'"),
        ({"minibatch_size": 3, "size": 2}, "cannot be divided equally among 2 processes"),
        ({"minibatch_size": 1, "sparse": True, "data_format": "channels_last"}, "channels first"),
        ({"minibatch_size": 1, "workers": 0}, "must both be at least 1"),
    ],
)
def test_invalid_settings_are_refused(generated, settings, message):
    with pytest.raises(DataError, match=message):
        Loader(generated, **settings)


def test_a_state_of_other_data_is_refused(generated):
    with (
        Loader(generated, minibatch_size=1, downsample=7) as one,
        Loader(generated, minibatch_size=2, downsample=7) as other,
        pytest.raises(DataError, match="had minibatch_size=1, this run has 2"),
    ):
        other.restore(one.state())
