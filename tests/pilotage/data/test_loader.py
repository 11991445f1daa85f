import pickle

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler, TensorDataset

from pilotage.data import Loader, Shard
from pilotage.errors import OptionError
from pilotage.options.batching import Batching

pytestmark = pytest.mark.slow


class Numbers(Dataset):
    """Sample k is the number k; samples can only be read one by one."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        return torch.tensor([float(index)]), index


class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return (torch.tensor([float(index)]) for index in range(self.length))


class SizedStream(Stream):
    def __len__(self):
        return self.length


def numbers_of(loader):
    return [int(number) for _, numbers in loader for number in numbers]


batchings = st.builds(
    Batching,
    device_iterations=st.integers(1, 4),
    gradient_accumulation=st.integers(1, 3),
    replicas=st.integers(1, 3),
)


@settings(deadline=None)
@given(samples=st.integers(0, 120), batch_size=st.integers(1, 7), batching=batchings, drop_last=st.booleans())
def test_each_batch_has_the_samples_of_one_call_in_order(samples, batch_size, batching, drop_last):
    loader = Loader(Numbers(samples), batching, batch_size=batch_size, drop_last=drop_last)
    combined = batch_size * batching.micro_batches_per_call
    assume(samples >= (combined if drop_last else 1))
    sizes = [len(numbers) for _, numbers in loader]
    assert loader.combined_batch_size == combined
    assert numbers_of(loader) == list(range(samples - samples % combined if drop_last else samples))
    assert all(size == combined for size in (sizes if drop_last else sizes[:-1]))
    assert len(loader) == len(sizes)


@pytest.mark.parametrize(
    "dataset", [Numbers(50), TensorDataset(torch.rand(50, 3), torch.arange(50))], ids=["plain", "bulk"]
)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_batches_and_later_random_numbers_are_those_of_torchs_loader(dataset, shuffle, num_workers):
    seen = []
    for kind in (Loader, DataLoader):
        torch.manual_seed(42)
        arguments = {"num_workers": num_workers, "persistent_workers": num_workers > 0, "drop_last": True}
        loader = kind(dataset, batch_size=8, shuffle=shuffle, **arguments)
        seen.append([list(loader), list(loader), torch.rand(3)])
    ours, torchs = seen
    assert torch.equal(ours[2], torchs[2])
    for batches, expected in zip(ours[:2], torchs[:2], strict=True):
        assert len(batches) == len(expected)
        for batch, other in zip(batches, expected, strict=True):
            assert type(batch) is type(other)
            assert all(map(torch.equal, batch, other))


@settings(deadline=None)
@given(
    samples=st.integers(1, 60),
    batch_size=st.integers(1, 9),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    seed=st.integers(0, 99),
)
def test_reading_in_bulk_changes_nothing(samples, batch_size, shuffle, drop_last, seed):
    assume(samples >= batch_size or not drop_last)
    dataset = TensorDataset(torch.rand(samples, 2), torch.arange(samples))
    arguments = {"batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last}
    torch.manual_seed(seed)
    in_bulk = list(Loader(dataset, **arguments))
    torch.manual_seed(seed)
    one_by_one = list(DataLoader(dataset, **arguments))
    assert len(in_bulk) == len(one_by_one)
    assert all(all(map(torch.equal, batch, other)) for batch, other in zip(in_bulk, one_by_one, strict=True))


def test_the_users_generator_decides_the_order():
    dataset = TensorDataset(torch.arange(30))
    ours = Loader(dataset, batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(3))
    torchs = DataLoader(dataset, batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(3))
    assert torch.equal(torch.cat([x for (x,) in ours]), torch.cat([x for (x,) in torchs]))


def test_whole_batches_are_asked_of_a_dataset_that_offers_them():
    class Offering(Numbers):
        asked = 0

        def fetch_batch(self, indices):
            self.asked += 1
            return torch.tensor(indices)

    dataset = Offering(12)
    assert torch.equal(torch.cat(list(Loader(dataset, Batching(replicas=2), batch_size=3))), torch.arange(12))
    assert dataset.asked == 2


@pytest.mark.parametrize("drop_last", [True, False])
def test_batches_of_a_sampler_are_joined(drop_last):
    sampler = BatchSampler(SequentialSampler(range(20)), 3, drop_last=False)
    loader = Loader(Numbers(20), Batching(device_iterations=2), batch_sampler=sampler, drop_last=drop_last)
    assert loader.combined_batch_size == 6
    assert [len(numbers) for _, numbers in loader] == [6, 6, 6] + [2] * (not drop_last)
    assert numbers_of(loader) == list(range(18 if drop_last else 20))
    assert len(loader) == (3 if drop_last else 4)


def test_batches_of_a_sampler_keep_their_structure():
    def collate(samples):
        return {"x": torch.stack([x for x, _ in samples]), "pair": (torch.tensor([n for _, n in samples]),)}

    loader = Loader(Numbers(8), Batching(replicas=2), batch_sampler=[[0, 1], [5, 4], [2], [3]], collate_fn=collate)
    first, second = loader
    assert first["pair"][0].tolist() == [0, 1, 5, 4]
    assert second["x"].tolist() == [[2.0], [3.0]]
    assert loader.combined_batch_size is None


def test_a_sampler_without_a_length_is_iterated():
    loader = Loader(Numbers(8), Batching(replicas=2), batch_sampler=iter([[0, 1], [2, 3]]))
    assert numbers_of(loader) == [0, 1, 2, 3]
    with pytest.raises(TypeError):
        len(loader)


def test_a_stream_is_batched_and_has_the_length_that_it_claims():
    loader = Loader(SizedStream(10), Batching(device_iterations=2), batch_size=2)
    assert [len(batch) for batch in loader] == [4, 4]
    assert len(loader) == 2


def test_a_stream_without_a_length_has_none_here_either():
    with pytest.raises(TypeError, match="has no len"):
        len(Loader(Stream(10)))


def test_without_a_batch_size_samples_are_yielded_unchanged():
    loader = Loader([torch.rand(2, 2) for _ in range(3)], batch_size=None)
    assert loader.combined_batch_size is None
    assert [batch.shape for batch in loader] == [(2, 2)] * 3


@settings(deadline=None)
@given(
    samples=st.integers(0, 100),
    batch_size=st.integers(1, 5),
    iterations=st.integers(1, 3),
    processes=st.integers(1, 4),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
)
def test_processes_load_every_sample_exactly_once(samples, batch_size, iterations, processes, drop_last, shuffle):
    loaders = [
        Loader(
            Numbers(max(samples, 1)),
            Batching(device_iterations=iterations),
            batch_size=batch_size,
            drop_last=drop_last,
            shuffle=shuffle,
            shuffle_seed=3,
            shard=Shard(process=process, processes=processes),
        )
        for process in range(processes)
    ]
    step = batch_size * iterations * processes
    assume(samples >= step or not drop_last)
    for _ in range(2):
        drawn = [numbers_of(loader) for loader in loaders]
        together = [number for part in drawn for number in part]
        assert len(set(together)) == len(together)
        assert len(together) == (max(samples, 1) // step * step if drop_last else max(samples, 1))
        if drop_last:
            assert len({len(part) for part in drawn}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": Stream(5)}, "IterableDataset cannot be divided"),
        ({"batch_size": None}, "batch_size=None"),
        ({"sampler": range(5)}, "sampler"),
        ({"batch_sampler": [[1], [2]]}, "batch_sampler"),
        ({"shuffle": True}, "the same shuffle_seed"),
    ],
    ids=["stream", "no batch size", "sampler", "batch sampler", "no seed"],
)
def test_data_that_cannot_be_divided_among_processes_is_refused(arguments, message):
    with pytest.raises(OptionError, match=message):
        Loader(**{"dataset": Numbers(10)} | arguments, shard=Shard(process=0, processes=2))


def test_pieces_are_yielded_for_later_rebatching():
    loader = Loader(Numbers(20), Batching(device_iterations=4), batch_size=2, piece_size=3)
    assert [len(numbers) for _, numbers in loader] == [3] * 6 + [2]
    assert loader.combined_batch_size == 8
    assert loader.samples == 20


def test_workers_persist_by_default_and_are_reused_after_a_break():
    loader = Loader(Numbers(20), batch_size=2, num_workers=1)
    assert loader.persistent_workers
    for _, numbers in loader:
        assert numbers.tolist() == [0, 1]
        break
    assert numbers_of(loader) == list(range(20))


def test_a_loader_with_running_workers_can_be_pickled():
    loader = Loader(TensorDataset(torch.arange(6)), batch_size=2, num_workers=1)
    expected = [x.tolist() for (x,) in loader]
    copy = pickle.loads(pickle.dumps(loader))
    assert [x.tolist() for (x,) in copy] == expected


def test_samples_are_counted_for_each_kind_of_sampler():
    assert Loader(Numbers(10), sampler=[3, 1, 2]).samples == 3
    assert Loader(SizedStream(10)).samples == 10
    sequence = SequentialSampler(range(10))
    assert Loader(Numbers(10), batch_sampler=BatchSampler(sequence, 3, drop_last=False)).samples == 10
    assert Loader(Numbers(10), batch_sampler=BatchSampler(sequence, 3, drop_last=True)).samples == 9
