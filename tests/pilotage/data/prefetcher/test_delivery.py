"""The same items arrive in the same order in every sharing mode."""

from __future__ import annotations

import gc
import os
from functools import partial

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from pilotage.data import Loader, Prefetcher, SharingMode
from pilotage.options.batching import Batching

pytestmark = pytest.mark.slow

NUMBERS = TensorDataset(torch.arange(20.0), torch.arange(20))

forked = partial(Prefetcher, sharing_mode=SharingMode.FORK)


def numbers_of(batches):
    return [int(number) for _, numbers in batches for number in numbers]


def assert_length(prefetcher, length):
    assert len(prefetcher) == length
    assert len(list(prefetcher)) == length
    prefetcher.terminate()


@pytest.mark.parametrize("sharing_mode", SharingMode)
def test_every_way_of_sharing_delivers_the_same_epoch_after_epoch(sharing_mode):
    loader = Loader(NUMBERS, Batching(device_iterations=2), batch_size=3)
    prefetcher = Prefetcher(loader, sharing_mode=sharing_mode)
    for _ in range(3):
        assert numbers_of(prefetcher) == numbers_of(loader)
    prefetcher.terminate()


@pytest.mark.parametrize("sharing_mode", [SharingMode.FORK_SERVER, SharingMode.FILE_SYSTEM, SharingMode.SHARED_MEMORY])
def test_a_dataset_of_very_many_tensors_is_delivered(sharing_mode):
    samples = [torch.tensor([number]) for number in range(300)]
    prefetcher = Prefetcher(samples, sharing_mode=sharing_mode)
    assert [int(number) for number in prefetcher] == list(range(300))
    prefetcher.terminate()


@pytest.mark.usefixtures("nothing_left_behind")
def test_items_are_views_valid_until_the_next_one():
    # Prefetching the next epoch would soon overwrite the last item in the ring.
    items = [torch.full((3,), float(number)) for number in range(9)]
    prefetcher = forked(items, buffer_size=2, load_indefinitely=False)
    kept, copies = [], []
    for item in prefetcher:
        copies.append(item.clone())
        kept.append(item)
    assert [int(copy[0]) for copy in copies] == list(range(9))
    assert len({item.data_ptr() for item in kept}) == 2
    prefetcher.terminate()
    assert kept[-1].tolist() == [8.0] * 3
    del kept, item, prefetcher
    gc.collect()


@pytest.mark.parametrize("buffer_size", [1, 2, 7])
def test_any_size_of_the_ring_delivers_everything(buffer_size):
    prefetcher = forked(Loader(NUMBERS, batch_size=3, drop_last=False), buffer_size=buffer_size)
    assert numbers_of(prefetcher) == list(range(20))
    assert [len(numbers) for _, numbers in prefetcher][-1] == 2
    prefetcher.terminate()


def test_items_keep_their_type():
    a, b = torch.rand(2, 3), torch.arange(2)
    for item, arrives_as in (
        (a, a),
        ((a, b), [a, b]),
        ({"z": a, "a": b}, {"z": a, "a": b}),
        (torch.tensor(7), torch.tensor(7)),
        ([torch.rand(2, requires_grad=True), a.t()], None),
    ):
        prefetcher = forked([item, item])
        for arrived in prefetcher:
            torch.testing.assert_close(arrived, list(item) if arrives_as is None else arrives_as, rtol=0, atol=0)
        assert not isinstance(arrived, dict) or list(arrived) == list(item)
        prefetcher.terminate()


@pytest.mark.parametrize("sharing_mode", [SharingMode.FORK, SharingMode.FORK_SERVER])
def test_shuffling_in_the_process_gives_the_same_order(sharing_mode):
    torch.manual_seed(11)
    loader = Loader(NUMBERS, batch_size=4, shuffle=True)
    prefetcher = Prefetcher(loader, sharing_mode=sharing_mode)
    ahead = [numbers_of(prefetcher) for _ in range(2)]
    assert ahead == [numbers_of(loader) for _ in range(2)]
    assert ahead[0] != ahead[1]
    prefetcher.terminate()


def test_the_random_stream_of_this_process_is_not_changed():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    forked(Loader(NUMBERS, shuffle=True)).terminate()
    assert torch.equal(torch.rand(2), expected)


def test_a_loader_with_workers_can_be_prefetched(ends):
    class WhoReads(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return torch.tensor([index, os.getpid()])

    prefetcher = forked(Loader(WhoReads(), batch_size=2, num_workers=1))
    readers = {int(reader) for batch in prefetcher for reader in batch[:, 1]}
    assert len(readers) == 1
    prefetcher.terminate()
    assert all(ends(reader) for reader in readers)


@pytest.mark.parametrize("drop_last", [True, False])
def test_items_are_rebatched_in_the_other_process(drop_last):
    loader = Loader(NUMBERS, Batching(device_iterations=3), batch_size=2, piece_size=4)
    prefetcher = forked(loader, rebatched_size=6, drop_last=drop_last)
    assert [len(numbers) for _, numbers in prefetcher] == [6, 6, 6] + [2] * (not drop_last)
    assert numbers_of(prefetcher) == list(range(18 if drop_last else 20))
    assert len(prefetcher) == (3 if drop_last else 4)
    prefetcher.terminate()


def test_the_length_is_that_of_what_is_read():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(7))

        def __len__(self):
            return 7

    assert_length(forked([torch.ones(2)] * 5), 5)
    assert_length(forked([torch.ones(2)] * 5, rebatched_size=4), 2)
    assert_length(forked(DataLoader(NUMBERS, batch_size=3), rebatched_size=8), 2)
    assert_length(forked(DataLoader(NUMBERS, batch_size=3, drop_last=True), rebatched_size=9), 2)
    assert_length(forked(DataLoader(Stream(), batch_size=2), rebatched_size=3), 2)


def test_an_iterable_without_a_length_has_none_here_either():
    prefetcher = forked(iter([torch.ones(1)]))
    with pytest.raises(TypeError, match="has no len"):
        len(prefetcher)
    prefetcher.terminate()
