"""Loaders with the user's batch sampler."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import BatchSampler, SequentialSampler

from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy
from poptorch.options import Options
from poptorch.poptorch_core import Error

pytestmark = pytest.mark.slow

FORK = {"sharing_strategy": SharingStrategy.Fork}


class Endless:
    """A batch sampler without a usable length, in one of three ways."""

    batch_size = 2

    def __iter__(self):
        return iter([[0, 1], [2, 3], [4, 5]])


class LengthNotImplemented(Endless):
    def __len__(self):
        return NotImplemented


class LengthRaises(Endless):
    def __len__(self):
        raise NotImplementedError


@pytest.mark.parametrize("drop_last", [True, False])
def test_batches_of_a_sampler_are_joined_in_order(drop_last, numbered, options, numbers_of):
    sampler = BatchSampler(SequentialSampler(range(22)), 3, drop_last=True)
    loader = DataLoader(options(2, 1, 2), numbered(22), drop_last=drop_last, batch_sampler=sampler)
    assert loader.combinedBatchSize == 12
    assert [len(numbers) for _, numbers in loader] == [12] + [9] * (not drop_last)
    assert numbers_of(loader) == list(range(12 if drop_last else 21))
    assert len(loader) == (1 if drop_last else 2)


def test_joined_batches_keep_their_structure(numbered, options):
    def collate(samples):
        return {"x": torch.stack([x for x, _ in samples]), "rest": [torch.tensor([n for _, n in samples])]}

    loader = DataLoader(options(2), numbered(8), batch_sampler=[[0, 1], [7, 5]], collate_fn=collate)
    (batch,) = loader
    assert batch["x"].flatten().tolist() == [0, 1, 7, 5]
    assert batch["rest"][0].tolist() == [0, 1, 7, 5]


@pytest.mark.parametrize("arguments", [{"batch_size": 2}, {"batch_size": None}, {"shuffle": True}], ids=str)
def test_a_batch_sampler_excludes_batch_size_and_shuffle(arguments, numbered):
    with pytest.raises(Error, match="batch_sampler"):
        DataLoader(Options(), numbered(8), batch_sampler=[[0]], **arguments)


def test_a_batch_sampler_is_not_divided_among_processes(numbered, distributed, numbers_of):
    with pytest.raises(Error, match="auto_distributed_partitioning=False"):
        DataLoader(distributed(0, 2), numbered(8), batch_sampler=[[0], [1]])
    loader = DataLoader(distributed(0, 2), numbered(8), batch_sampler=[[0], [1]], auto_distributed_partitioning=False)
    assert numbers_of(loader) == [0, 1]


@pytest.mark.parametrize("sampler", [Endless(), LengthNotImplemented(), LengthRaises()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("drop_last", [True, False])
def test_a_sampler_without_a_usable_length_is_only_logged(
    caplog, sampler, drop_last, numbered, options, numbers_of, warnings_of_poptorch
):
    caplog.set_level("INFO", "poptorch::python")
    loader = DataLoader(options(2), numbered(8), batch_sampler=sampler, drop_last=drop_last)
    assert loader.combinedBatchSize == 4
    assert numbers_of(loader) == list(range(4 if drop_last else 6))
    assert ["no usable length" in line for line in warnings_of_poptorch()] == [True] * (not drop_last)


@pytest.mark.parametrize(
    ("mode", "drop_last", "sizes"),
    [
        (DataLoaderMode.Sync, True, [4, 4, 3]),
        (DataLoaderMode.Async, True, [4, 4, 3]),
        (DataLoaderMode.Async, False, [4, 4, 3]),
        (DataLoaderMode.AsyncRebatched, True, [4, 4]),
        (DataLoaderMode.AsyncRebatched, False, [4, 4, 3]),
    ],
)
def test_batches_of_a_sampler_arrive_in_every_mode(mode, drop_last, sizes, numbered, options, numbers_of):
    sampler = BatchSampler(SequentialSampler(range(11)), 2, drop_last=False)
    more = FORK if mode else None
    loader = DataLoader(
        options(2), numbered(11), drop_last=drop_last, batch_sampler=sampler, mode=mode, async_options=more
    )
    assert [len(numbers) for _, numbers in loader] == sizes
    assert numbers_of(loader) == list(range(sum(sizes)))
    assert len(loader) == len(sizes)
    loader.terminate()


def test_a_batch_sampler_decides_the_size_of_the_pieces(numbered, options):
    with pytest.raises(AssertionError, match="rebatched_worker_size"):
        DataLoader(
            options(2),
            numbered(8),
            batch_sampler=BatchSampler(SequentialSampler(range(8)), 2, drop_last=True),
            mode=DataLoaderMode.AsyncRebatched,
            rebatched_worker_size=2,
        )
