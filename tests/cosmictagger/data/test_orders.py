import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.data.orders import ORDERS, entries_of
from cosmictagger.errors import DataError

SIZES = st.integers(1, 40).flatmap(lambda events: st.tuples(st.just(events), st.integers(1, events)))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(ORDERS)), SIZES, st.integers(0, 1000), st.integers(0, 2**62))
def test_every_batch_is_full_and_from_the_file(order, sizes, batch, seed):
    events, minibatch_size = sizes
    entries = entries_of(order, batch, events=events, minibatch_size=minibatch_size, seed=seed)
    again = entries_of(order, batch, events=events, minibatch_size=minibatch_size, seed=seed)
    assert entries.shape == (minibatch_size,)
    assert entries.min() >= 0
    assert entries.max() < events
    assert np.array_equal(entries, again)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(0, 5), st.integers(0, 2**62))
def test_a_shuffled_epoch_has_every_event_once(sizes, epoch, seed):
    events, minibatch_size = sizes
    batches = [
        entries_of("shuffle", number, events=events, minibatch_size=minibatch_size, seed=seed)
        for number in range((epoch + 1) * events // minibatch_size + 1)
    ]
    drawn = np.concatenate(batches)[epoch * events : (epoch + 1) * events]
    assert sorted(drawn) == list(range(events))[: len(drawn)] or len(drawn) < events


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(0, 100), st.integers(0, 2**62))
def test_blocks_are_consecutive(sizes, batch, seed):
    events, minibatch_size = sizes
    entries = entries_of("random_blocks", batch, events=events, minibatch_size=minibatch_size, seed=seed)
    assert np.all(np.diff(entries) == 1)


def test_blocks_reach_the_first_and_the_last_event():
    drawn = [entries_of("random_blocks", batch, events=5, minibatch_size=3, seed=1) for batch in range(60)]
    assert {int(entries[0]) for entries in drawn} == {0, 1, 2}


def test_serial_access_wraps_around():
    drawn = [entries_of("serial_access", batch, events=5, minibatch_size=2, seed=0).tolist() for batch in range(4)]
    assert drawn == [[0, 1], [2, 3], [4, 0], [1, 2]]


def test_seeds_differ():
    one, other = (
        [entries_of("shuffle", batch, events=50, minibatch_size=10, seed=seed).tolist() for batch in range(5)]
        for seed in (1, 2)
    )
    assert one != other


def test_an_unknown_order_is_refused():
    with pytest.raises(DataError, match="Choose one of: random_blocks, serial_access, shuffle"):
        entries_of("random", 0, events=5, minibatch_size=1, seed=0)
