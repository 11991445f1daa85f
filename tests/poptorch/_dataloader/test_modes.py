"""The modes of a loader: synchronous, asynchronous and rebatching."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy
from poptorch.options import Options

pytestmark = pytest.mark.slow

FORK = {"sharing_strategy": SharingStrategy.Fork}


@settings(deadline=None, max_examples=12)
@given(
    samples=st.integers(1, 40),
    batch_size=st.integers(1, 4),
    iterations=st.integers(1, 3),
    mode=st.sampled_from(list(DataLoaderMode)),
    drop_last=st.booleans(),
    worker_size=st.none() | st.integers(1, 4),
)
def test_every_mode_yields_the_same(
    samples, batch_size, iterations, mode, drop_last, worker_size, numbered, options, numbers_of
):
    combined = batch_size * iterations
    samples = max(samples, combined)
    extra = {}
    if mode == DataLoaderMode.AsyncRebatched:
        extra = {"rebatched_worker_size": min(worker_size, combined) if worker_size else None}
    loader = DataLoader(
        options(iterations),
        numbered(samples),
        batch_size,
        drop_last=drop_last,
        mode=mode,
        async_options=FORK if mode else None,
        **extra,
    )
    for _ in range(2):
        sizes = [len(numbers) for _, numbers in loader]
        assert numbers_of(loader) == list(range(samples // combined * combined if drop_last else samples))
        assert all(size == combined for size in (sizes if drop_last else sizes[:-1]))
        assert len(loader) == len(sizes)
        assert loader.combinedBatchSize == combined
    loader.terminate()


def test_an_asynchronous_loader_needs_no_options(options):
    loader = DataLoader(options(2), TensorDataset(torch.arange(8)), 2, mode=DataLoaderMode.Async)
    assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    loader.terminate()


@pytest.mark.parametrize("strategy", list(SharingStrategy))
@pytest.mark.parametrize("mode", [DataLoaderMode.Async, DataLoaderMode.AsyncRebatched])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_every_sharing_strategy_is_honoured(strategy, mode, num_workers, options):
    loader = DataLoader(
        options(2),
        TensorDataset(torch.arange(11)),
        2,
        drop_last=False,
        num_workers=num_workers,
        mode=mode,
        async_options={"sharing_strategy": strategy, "early_preload": True, "load_indefinitely": False},
    )
    for _ in range(2):
        assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    loader.terminate()


def test_asynchronous_without_drop_last_rebatches(numbered, options):
    loader = DataLoader(options(2), numbered(9), 2, drop_last=False, mode=DataLoaderMode.Async, async_options=FORK)
    assert not loader.drop_last
    assert loader.rebatched_drop_last is False
    assert [len(numbers) for _, numbers in loader] == [4, 4, 1]
    loader.terminate()


def test_rebatching_applies_drop_last_itself(numbered, options):
    loader = DataLoader(
        options(4), numbered(21), 2, mode=DataLoaderMode.AsyncRebatched, rebatched_worker_size=3, async_options=FORK
    )
    assert loader.batch_size == 3
    assert not loader.drop_last
    assert loader.rebatched_drop_last
    assert loader.combinedBatchSize == 8
    assert [len(numbers) for _, numbers in loader] == [8, 8]
    assert len(loader) == 2
    loader.terminate()


def test_workers_load_pieces_not_larger_than_the_combined_batch(numbered, options):
    with pytest.raises(AssertionError, match="rebatched_worker_size is 9"):
        DataLoader(options(4), numbered(20), 2, mode=DataLoaderMode.AsyncRebatched, rebatched_worker_size=9)


@pytest.mark.parametrize("mode", [DataLoaderMode.Async, DataLoaderMode.AsyncRebatched])
def test_the_rebatched_size_cannot_be_set(mode, numbered, options):
    with pytest.raises(AssertionError, match="rebatched_size"):
        DataLoader(options(4), numbered(20), 2, mode=mode, async_options={"rebatched_size": 8})


def test_rebatching_needs_a_known_size(numbered):
    with pytest.raises(AssertionError, match="batch_size"):
        DataLoader(Options(), numbered(8), batch_size=None, mode=DataLoaderMode.AsyncRebatched)


def test_settings_without_effect_give_a_warning(numbered, warnings_of_poptorch):
    DataLoader(Options(), numbered(8), async_options=FORK)
    DataLoader(Options(), numbered(8), 2, rebatched_worker_size=1)
    assert ["async_options" in line for line in warnings_of_poptorch()] == [True, False]
    assert "rebatched_worker_size" in warnings_of_poptorch()[1]


def test_pin_memory_is_ignored_by_asynchronous_loaders(numbered, numbers_of, warnings_of_poptorch):
    loader = DataLoader(Options(), numbered(3), pin_memory=True, mode=DataLoaderMode.Async, async_options=FORK)
    assert "pin_memory" in warnings_of_poptorch()[0]
    assert numbers_of(loader) == [0, 1, 2]
    loader.terminate()


def test_items_are_views_of_the_ring():
    loader = DataLoader(Options(), TensorDataset(torch.arange(9)), 1, mode=DataLoaderMode.Async, async_options=FORK)
    addresses = [batch.data_ptr() for (batch,) in loader]
    assert len(set(addresses)) == 3
    loader.terminate()


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("mode", list(DataLoaderMode))
def test_a_loader_without_a_batch_names_both_numbers_in_every_mode(mode, drop_last, numbered, options):
    items = 5 if drop_last else 0
    expected = r"has 5 items, but one combined batch takes 6 = 2 x 3 micro-batches" if drop_last else "has 0 items"
    with pytest.raises(ValueError, match=expected):
        list(DataLoader(options(3), numbered(items), 2, mode=mode, drop_last=drop_last))
