"""Loaders without a single batch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import IterableDataset, SubsetRandomSampler, TensorDataset

from pilotage.data import Loader, Prefetcher, Shard, SharingMode
from pilotage.errors import FetchStartError, OptionError
from pilotage.options.batching import Batching


def numbers(count):
    return TensorDataset(torch.arange(count))


class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(torch.arange(self.count))


@settings(deadline=None, max_examples=30)
@given(
    items=st.integers(1, 40), batch_size=st.integers(1, 8), iterations=st.integers(1, 5), processes=st.integers(1, 3)
)
def test_both_numbers_are_named_whenever_a_call_consumes_more_than_there_is(items, batch_size, iterations, processes):
    combined = batch_size * iterations
    shard = Shard(process=0, processes=processes)
    loader = Loader(numbers(items), Batching(device_iterations=iterations), batch_size=batch_size, shard=shard)
    if items >= combined * processes:
        assert len(list(loader)) == len(loader) > 0
        return
    with pytest.raises(OptionError, match="smaller batch size") as caught:
        list(loader)
    assert f"{items} item" in str(caught.value)
    assert f"one combined batch takes {combined}" in str(caught.value)
    assert (f"for {processes} processes" in str(caught.value)) == (processes > 1)


def test_the_error_shows_how_a_combined_batch_is_computed():
    loader = Loader(numbers(10), Batching(device_iterations=3, gradient_accumulation=2), batch_size=2)
    with pytest.raises(OptionError, match="has 10 items, but one combined batch takes 12 = 2 x 6 micro-batches"):
        iter(loader)


def test_an_empty_dataset_is_refused_with_and_without_drop_last():
    for drop_last in (True, False):
        with pytest.raises(OptionError, match="0 items"):
            iter(Loader(Nothing(), batch_size=2, drop_last=drop_last))


class Nothing(torch.utils.data.Dataset):
    def __len__(self):
        return 0

    def __getitem__(self, index):
        raise IndexError(index)


def test_a_process_without_samples_of_a_small_dataset_is_not_an_error():
    parts = [
        list(Loader(numbers(2), batch_size=4, drop_last=False, shard=Shard(process=process, processes=3)))
        for process in range(3)
    ]
    assert [len(part) for part in parts] == [1, 1, 0]


def test_a_sampler_that_draws_too_few_is_counted():
    loader = Loader(numbers(50), batch_size=8, sampler=SubsetRandomSampler(range(5)))
    with pytest.raises(OptionError, match="50 items, this process reads 5 of them, but one combined batch takes 8"):
        iter(loader)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_stream_that_ends_before_the_first_batch_is_refused(num_workers):
    assert len(list(Loader(Stream(8), batch_size=8, num_workers=num_workers))) == 1
    with pytest.raises(OptionError, match="yields too few items, but one combined batch takes 8"):
        list(Loader(Stream(5), batch_size=8, num_workers=num_workers))


def test_batches_of_the_users_sampler_are_counted_in_calls():
    sampler = torch.utils.data.BatchSampler(range(9), 3, drop_last=True)
    with pytest.raises(OptionError, match="one combined batch takes 12 = 3 x 4 micro-batches"):
        iter(Loader(numbers(9), Batching(device_iterations=4), batch_sampler=sampler))


def test_no_process_is_started_to_read_nothing():
    with pytest.raises(OptionError, match="has 5 items, but one combined batch takes 8"):
        Prefetcher(Loader(numbers(5), batch_size=8), sharing_mode=SharingMode.FORK)


def test_rows_that_do_not_fill_a_batch_are_counted_by_the_process_that_reads_them():
    with pytest.raises(FetchStartError, match="has 6 items, but one combined batch takes 8"):
        Prefetcher([torch.ones(3, 2), torch.ones(3, 2)], rebatched_size=8, sharing_mode=SharingMode.FORK)
