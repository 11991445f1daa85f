"""Loaders that divide a dataset among several processes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils.data import RandomSampler

from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy
from poptorch.poptorch_core import Error

pytestmark = pytest.mark.slow

FORK = {"sharing_strategy": SharingStrategy.Fork}


def test_shuffling_in_several_processes_needs_a_seed(numbered, distributed):
    with pytest.raises(AssertionError, match="randomSeed"):
        DataLoader(distributed(0, 2), numbered(8), shuffle=True)
    DataLoader(distributed(0, 2), numbered(8), shuffle=True, auto_distributed_partitioning=False)


def test_several_processes_need_a_batch_size(numbered, distributed):
    with pytest.raises(AssertionError, match="batch_size"):
        DataLoader(distributed(0, 2), numbered(8), batch_size=None)


def test_a_sampler_is_not_divided_among_processes(numbered, distributed):
    with pytest.raises(Error, match="auto_distributed_partitioning=False"):
        DataLoader(distributed(0, 2), numbered(8), sampler=RandomSampler(numbered(8)))


@settings(deadline=None)
@given(
    samples=st.integers(1, 100),
    batch_size=st.integers(1, 4),
    iterations=st.integers(1, 3),
    processes=st.integers(1, 5),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
)
def test_processes_load_every_sample_exactly_once(
    samples, batch_size, iterations, processes, drop_last, shuffle, numbered, distributed, numbers_of
):
    loaders = [
        DataLoader(
            distributed(process, processes, seed=5, iterations=iterations),
            numbered(samples),
            batch_size,
            shuffle,
            drop_last=drop_last,
        )
        for process in range(processes)
    ]
    step = batch_size * iterations * processes
    assume(samples >= step or not drop_last)
    for _ in range(2):
        parts = [numbers_of(loader) for loader in loaders]
        together = [number for part in parts for number in part]
        assert len(set(together)) == len(together)
        assert len(together) == (samples // step * step if drop_last else samples)
    for loader in loaders:
        assert len(loader) == len(list(loader))


def test_with_drop_last_each_process_gets_consecutive_whole_steps(numbered, distributed, numbers_of):
    parts = [numbers_of(DataLoader(distributed(process, 2, iterations=2), numbered(27), 3)) for process in range(2)]
    assert parts == [list(range(12)), list(range(12, 24))]


def test_without_drop_last_the_first_processes_get_one_more(numbered, distributed, numbers_of):
    parts = [numbers_of(DataLoader(distributed(p, 4), numbered(10), drop_last=False)) for p in range(4)]
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_left_over_samples_are_covered_in_every_second_epoch(num_workers, numbered, distributed, numbers_of):
    loaders = [
        DataLoader(distributed(process, 2, seed=9), numbered(11), 4, shuffle=True, num_workers=num_workers)
        for process in range(2)
    ]
    generator = torch.Generator().manual_seed(9)
    for epoch in range(4):
        order = torch.randperm(11, generator=generator).tolist()
        shift = 3 * (epoch % 2)
        assert [number for loader in loaders for number in numbers_of(loader)] == order[shift : shift + 8]


def test_an_asynchronous_loader_shuffles_like_the_others(numbered, distributed, numbers_of):
    sync, ahead = (
        DataLoader(distributed(1, 2, seed=9), numbered(11), 4, shuffle=True, mode=mode, async_options=more)
        for mode, more in ((DataLoaderMode.Sync, None), (DataLoaderMode.Async, FORK))
    )
    assert [numbers_of(sync) for _ in range(4)] == [numbers_of(ahead) for _ in range(4)]
    ahead.terminate()
