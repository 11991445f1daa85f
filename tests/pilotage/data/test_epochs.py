from __future__ import annotations

import json
import random
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from pilotage.data import Epochs, Loader, Shard
from pilotage.errors import OptionError
from pilotage.options.batching import Batching

SAMPLES = 23


class Noisy(Dataset):
    """Draws from all three kinds of generators for each sample."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.tensor([index, float(torch.rand(())), random.random(), np.random.rand()])


def shuffled():
    return Loader(Noisy(), Batching(gradient_accumulation=2), batch_size=2, shuffle=True)


def of_tensors():
    return Loader(TensorDataset(torch.arange(float(SAMPLES))), batch_size=4, shuffle=True, drop_last=False)


def of_torch():
    return DataLoader(Noisy(), batch_size=5, shuffle=True)


def shared():
    shard = Shard(process=1, processes=2)
    return Loader(Noisy(), batch_size=2, shuffle=True, shard=shard, shuffle_seed=3)


def with_its_own_generators():
    sampler = RandomSampler(range(SAMPLES), generator=torch.Generator().manual_seed(8))
    return DataLoader(Noisy(), batch_size=3, sampler=sampler, generator=torch.Generator().manual_seed(9))


def distributed():
    return DataLoader(Noisy(), batch_size=3, sampler=DistributedSampler(range(SAMPLES), num_replicas=2, rank=1))


def with_workers():
    return Loader(Noisy(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=False)


def seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def tensors(batches):
    return [batch[0] if isinstance(batch, list) else batch for batch in batches]


def goes_on_as_if_nothing_had_happened(make, seen: int, later: int) -> None:
    seed(1)
    undisturbed = tensors(islice(iter(Epochs(make())), seen + later))
    seed(1)
    first = Epochs(make())
    batches = iter(first)
    for _ in range(seen):
        next(batches)
    position = json.loads(json.dumps(first.position()))
    # As a new process would start: with another random state, and a new loader.
    seed(2)
    second = Epochs(make())
    second.resume(position)
    found = tensors(islice(iter(second), later))
    assert len(found) == later
    assert all(torch.equal(one, other) for one, other in zip(found, undisturbed[seen:], strict=True))


@settings(deadline=None, max_examples=40)
@given(
    make=st.sampled_from([shuffled, of_tensors, of_torch, shared, with_its_own_generators, distributed]),
    seen=st.integers(0, 17),
    later=st.integers(1, 12),
)
def test_a_later_run_resumes_as_if_never_interrupted(make, seen, later):
    goes_on_as_if_nothing_had_happened(make, seen, later)


@pytest.mark.slow
@pytest.mark.parametrize("seen", [0, 3, 5, 7])
def test_a_run_with_workers_resumes_as_if_never_interrupted(seen):
    goes_on_as_if_nothing_had_happened(with_workers, seen, 6)


def test_a_position_taken_after_restoring_one_can_be_restored():
    seed(1)
    undisturbed = tensors(islice(iter(Epochs(shuffled())), 14))
    position = None
    found = []
    for part in (3, 4, 2, 5):
        seed(part)
        epochs = Epochs(shuffled())
        if position is None:
            seed(1)
        else:
            epochs.resume(position)
        found += tensors(islice(iter(epochs), part))
        position = epochs.position()
    assert all(torch.equal(one, other) for one, other in zip(found, undisturbed, strict=True))


def test_epochs_and_batches_are_counted():
    epochs = Epochs(of_tensors())
    counts = [(epochs.epoch, epochs.batch) for _ in islice(iter(epochs), 8)]
    assert counts == [(0, number) for number in range(1, 7)] + [(1, 1), (1, 2)]


def test_an_empty_epoch_is_refused():
    for kind in (Loader, DataLoader):
        with pytest.raises(OptionError, match=rf"has {len(Noisy())} items, but one combined batch takes 99\."):
            next(iter(Epochs(kind(Noisy(), batch_size=99, drop_last=True))))


def test_a_position_of_other_data_is_refused():
    epochs = Epochs(of_tensors())
    list(islice(iter(epochs), 6))
    other = Epochs(Loader(TensorDataset(torch.arange(8.0)), batch_size=4))
    other.resume(epochs.position())
    with pytest.raises(OptionError, match=r"after batch 6 of an epoch, but this loader has only 2"):
        next(iter(other))
    with pytest.raises(OptionError, match="batch, began, epoch, now is missing"):
        other.resume({})
