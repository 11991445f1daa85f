"""Batches for whole calls."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from poptorch._dataloader import DataLoader
from poptorch.enums import CommGroupType

pytestmark = pytest.mark.slow


@settings(deadline=None)
@given(
    samples=st.integers(0, 90),
    batch_size=st.integers(1, 5),
    iterations=st.integers(1, 3),
    replicas=st.sampled_from([1, 2, 4]),
    accumulation=st.integers(1, 3),
    group=st.sampled_from([1, 2]),
    drop_last=st.booleans(),
)
def test_each_batch_has_the_combined_size_and_the_order_is_untouched(
    samples, batch_size, iterations, replicas, accumulation, group, drop_last, numbered, options, numbers_of
):
    group = min(group, replicas)
    mine = options(iterations, replicas, accumulation).inputReplicaGrouping(group, CommGroupType.Consecutive)
    loader = DataLoader(mine, numbered(samples), batch_size, drop_last=drop_last)
    combined = batch_size * iterations * (replicas // group) * accumulation
    assume(samples >= (combined if drop_last else 1))
    sizes = [len(numbers) for _, numbers in loader]
    assert loader.combinedBatchSize == combined
    assert loader.options is mine
    assert len(loader) == len(sizes)
    assert all(size == combined for size in (sizes if drop_last else sizes[:-1]))
    assert numbers_of(loader) == list(range(samples // combined * combined if drop_last else samples))


def test_without_a_batch_size_there_is_no_combined_size(options):
    loader = DataLoader(options(3), [torch.rand(6, 2)] * 2, batch_size=None)
    assert loader.combinedBatchSize is None
    assert not hasattr(loader, "options")
    assert [batch.shape for batch in loader] == [(6, 2)] * 2


def test_shuffling_is_torchs_own_in_a_single_process(options):
    dataset = TensorDataset(torch.arange(50))
    torch.manual_seed(42)
    ours = [batch for (batch,) in DataLoader(options(2), dataset, 5, shuffle=True)]
    torch.manual_seed(42)
    theirs = [batch for (batch,) in torch.utils.data.DataLoader(dataset, 10, shuffle=True)]
    assert torch.equal(torch.stack(ours), torch.stack(theirs))


def test_a_smaller_last_batch_gives_a_warning(numbered, options, warnings_of_poptorch):
    DataLoader(options(2), numbered(9), 2, drop_last=False)
    assert "9 samples" in warnings_of_poptorch()[0]
    assert "combined batch size of 4" in warnings_of_poptorch()[0]


def test_complete_batches_give_no_warning(numbered, options, warnings_of_poptorch):
    DataLoader(options(2), numbered(8), 2, drop_last=False)
    DataLoader(options(2), numbered(9), 2)
    assert not warnings_of_poptorch()
