import pickle
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.data.partition import EpochShuffle, Shard, ShardSampler, even_shard, whole_steps_shard
from pilotage.errors import OptionError

SAMPLES = st.integers(0, 300)
PROCESSES = st.integers(1, 9)
STEP = st.integers(1, 40)


def shards(processes: int) -> list[Shard]:
    return [Shard(process=process, processes=processes) for process in range(processes)]


@given(samples=SAMPLES, processes=PROCESSES)
def test_an_even_split_covers_every_sample_once_and_in_order(samples, processes):
    parts = [even_shard(samples, shard) for shard in shards(processes)]
    assert list(chain(*parts)) == list(range(samples))


@given(samples=SAMPLES, processes=PROCESSES)
def test_in_an_even_split_the_first_processes_get_one_sample_more(samples, processes):
    sizes = [len(even_shard(samples, shard)) for shard in shards(processes)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


@given(samples=SAMPLES, step=STEP, processes=PROCESSES)
def test_a_split_into_whole_steps_gives_every_process_the_same_number_of_samples(samples, step, processes):
    parts = [whole_steps_shard(samples, step, shard) for shard in shards(processes)]
    assert {len(part) for part in parts} == {step * (samples // (step * processes))}
    assert list(chain(*parts)) == list(range(len(parts[0]) * processes))


def sampled(samples, step, processes, *, drop_last, seed, epochs):
    """The samples of each process, epoch by epoch."""
    samplers = [
        ShardSampler(range(samples), shard=shard, step=step, drop_last=drop_last, shuffle_seed=seed)
        for shard in shards(processes)
    ]
    return [[list(sampler) for sampler in samplers] for _ in range(epochs)], samplers


@settings(deadline=None)
@given(samples=SAMPLES, step=STEP, processes=PROCESSES, drop_last=st.booleans(), seed=st.none() | st.integers(0, 9))
def test_samples_are_drawn_once_and_the_length_is_correct(samples, step, processes, drop_last, seed):
    epochs, samplers = sampled(samples, step, processes, drop_last=drop_last, seed=seed, epochs=2)
    for parts in epochs:
        drawn = list(chain(*parts))
        assert len(set(drawn)) == len(drawn)
        assert [len(part) for part in parts] == [len(sampler) for sampler in samplers]
        assert len(drawn) == (step * processes * (samples // (step * processes)) if drop_last else samples)


def test_the_shares_of_a_shuffled_epoch_are_windows_of_one_permutation():
    epochs, _ = sampled(20, 1, 4, drop_last=False, seed=7, epochs=3)
    generator = torch.Generator().manual_seed(7)
    for parts in epochs:
        assert list(chain(*parts)) == torch.randperm(20, generator=generator).tolist()


def test_left_over_samples_alternate_between_the_two_ends_when_shuffling():
    epochs, _ = sampled(23, 5, 2, drop_last=True, seed=7, epochs=4)
    generator = torch.Generator().manual_seed(7)
    for number, parts in enumerate(epochs):
        order = torch.randperm(23, generator=generator).tolist()
        shift = 3 if number % 2 else 0
        assert list(chain(*parts)) == order[shift : shift + 20]


def test_without_shuffling_the_window_stays():
    epochs, _ = sampled(23, 5, 2, drop_last=True, seed=None, epochs=3)
    assert all(list(chain(*parts)) == list(range(20)) for parts in epochs)


def test_a_pickled_sampler_continues_where_it_stopped():
    sampler = ShardSampler(range(50), shard=Shard(process=1, processes=2), step=1, drop_last=False, shuffle_seed=3)
    list(sampler)
    copy = pickle.loads(pickle.dumps(sampler))
    assert list(copy) == list(sampler)


@pytest.mark.parametrize(("process", "processes"), [(2, 2), (-1, 2), (0, 0)])
def test_an_invalid_process_number_is_refused(process, processes):
    with pytest.raises(OptionError, match="process"):
        Shard(process=process, processes=processes)


def test_one_generator_carries_on_from_epoch_to_epoch():
    shuffle, generator = EpochShuffle(5), torch.Generator().manual_seed(5)
    for epoch in range(3):
        assert shuffle.epochs_drawn == epoch
        assert torch.equal(shuffle.draw(40), torch.randperm(40, generator=generator))


def test_the_global_random_stream_is_not_used():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    EpochShuffle(5).draw(40)
    assert torch.equal(torch.rand(3), expected)
