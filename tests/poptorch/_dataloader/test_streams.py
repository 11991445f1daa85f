"""Datasets that are streams."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import IterableDataset

from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy
from poptorch.options import Options

pytestmark = pytest.mark.slow

FORK = {"sharing_strategy": SharingStrategy.Fork}


class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return (torch.tensor([index]) for index in range(self.length))


class SizedStream(Stream):
    def __len__(self):
        return self.length


def test_a_stream_is_not_divided_among_processes(distributed):
    with pytest.raises(AssertionError, match="IterableDataset"):
        DataLoader(distributed(0, 2), Stream(8))
    loader = DataLoader(distributed(0, 2), Stream(8), 4, auto_distributed_partitioning=False)
    assert [batch.flatten().tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_duplication_by_several_workers_gives_a_warning(warnings_of_poptorch):
    DataLoader(Options(), Stream(8), num_workers=1)
    DataLoader(Options(), Stream(8), num_workers=2, worker_init_fn=print)
    assert not warnings_of_poptorch()
    DataLoader(Options(), Stream(8), num_workers=2)
    assert "duplicated" in warnings_of_poptorch()[0]


@pytest.mark.parametrize("mode", list(DataLoaderMode))
def test_the_length_of_a_plain_stream_is_a_type_error(mode, options):
    loader = DataLoader(options(2), Stream(8), 2, mode=mode, async_options=FORK if mode else None)
    with pytest.raises(TypeError, match="has no len"):
        len(loader)
    loader.terminate()


def test_streams_are_rebatched(options):
    loader = DataLoader(
        options(2),
        SizedStream(11),
        2,
        drop_last=False,
        mode=DataLoaderMode.AsyncRebatched,
        rebatched_worker_size=3,
        async_options=FORK,
    )
    assert [batch.flatten().tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert len(loader) == 3
    loader.terminate()
