import gc
import inspect
import multiprocessing
import os
import select

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, Dataset, IterableDataset, RandomSampler, SequentialSampler, TensorDataset

from poptorch._dataloader import DataLoader
from poptorch.enums import CommGroupType, DataLoaderMode, SharingStrategy
from poptorch.options import Options
from poptorch.poptorch_core import Error

pytestmark = pytest.mark.slow

FORK = {"sharing_strategy": SharingStrategy.Fork}


class Numbers(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor([float(index)]), index


class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return (torch.tensor([index]) for index in range(self.length))


class SizedStream(Stream):
    def __len__(self):
        return self.length


def options(iterations=1, replicas=1, accumulation=1):
    made = Options().deviceIterations(iterations).replicationFactor(replicas)
    made.Training.gradientAccumulation(accumulation)
    return made


def distributed(process, processes, *, seed=None, **batching):
    made = options(**batching)
    made.Distributed.configureProcessId(process, processes)
    return made if seed is None else made.randomSeed(seed)


def numbers_of(loader):
    return [int(number) for _, numbers in loader for number in numbers]


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "poptorch::python"]


# The arguments.


def test_the_arguments_have_the_documented_order_and_defaults():
    parameters = inspect.signature(DataLoader).parameters
    assert list(parameters) == [
        "options",
        "dataset",
        "batch_size",
        "shuffle",
        "num_workers",
        "drop_last",
        "persistent_workers",
        "auto_distributed_partitioning",
        "mode",
        "async_options",
        "rebatched_worker_size",
        "batch_sampler",
        "kwargs",
    ]
    defaults = [each.default for each in parameters.values()]
    assert defaults[2:-1] == [1, None, 0, True, None, True, DataLoaderMode.Sync, None, None, None]


def test_it_is_a_torch_dataloader_that_drops_the_last_batch_by_default():
    loader = DataLoader(Options(), Numbers(10), 4)
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert loader.drop_last
    assert loader.batch_size == 4
    assert numbers_of(loader) == list(range(8))


@pytest.mark.parametrize("wrong", [None, 3, {}])
def test_options_have_to_be_options(wrong):
    with pytest.raises(AssertionError, match="Options"):
        DataLoader(wrong, Numbers(4))


def test_options_are_frozen():
    mine = Options()
    DataLoader(mine, Numbers(4))
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        mine.deviceIterations(2)


def test_workers_persist_where_there_are_any():
    assert not DataLoader(Options(), Numbers(4)).persistent_workers
    assert DataLoader(Options(), Numbers(4), num_workers=1).persistent_workers
    assert not DataLoader(Options(), Numbers(4), num_workers=1, persistent_workers=False).persistent_workers


def test_a_mode_has_to_be_a_mode():
    with pytest.raises(AssertionError, match="DataLoaderMode"):
        DataLoader(Options(), Numbers(4), mode="async")


# Combined batches.


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
    samples, batch_size, iterations, replicas, accumulation, group, drop_last
):
    group = min(group, replicas)
    mine = options(iterations, replicas, accumulation).inputReplicaGrouping(group, CommGroupType.Consecutive)
    loader = DataLoader(mine, Numbers(samples), batch_size, drop_last=drop_last)
    combined = batch_size * iterations * (replicas // group) * accumulation
    sizes = [len(numbers) for _, numbers in loader]
    assert loader.combinedBatchSize == combined
    assert loader.options is mine
    assert len(loader) == len(sizes)
    assert all(size == combined for size in (sizes if drop_last else sizes[:-1]))
    assert numbers_of(loader) == list(range(samples // combined * combined if drop_last else samples))


def test_without_a_batch_size_there_is_no_combined_size():
    loader = DataLoader(options(3), [torch.rand(6, 2)] * 2, batch_size=None)
    assert loader.combinedBatchSize is None
    assert not hasattr(loader, "options")
    assert [batch.shape for batch in loader] == [(6, 2)] * 2


def test_shuffling_is_torchs_own_in_a_single_process():
    dataset = TensorDataset(torch.arange(50))
    torch.manual_seed(42)
    ours = [batch for (batch,) in DataLoader(options(2), dataset, 5, shuffle=True)]
    torch.manual_seed(42)
    theirs = [batch for (batch,) in torch.utils.data.DataLoader(dataset, 10, shuffle=True)]
    assert torch.equal(torch.stack(ours), torch.stack(theirs))


def test_a_smaller_last_batch_is_warned_of(caplog):
    DataLoader(options(2), Numbers(9), 2, drop_last=False)
    assert "9 samples" in said(caplog)[0]
    assert "combined batch size of 4" in said(caplog)[0]


def test_complete_batches_are_not_warned_of(caplog):
    DataLoader(options(2), Numbers(8), 2, drop_last=False)
    DataLoader(options(2), Numbers(9), 2)
    assert not said(caplog)


# A batch sampler.


@pytest.mark.parametrize("drop_last", [True, False])
def test_batches_of_a_sampler_are_joined_in_order(drop_last):
    sampler = BatchSampler(SequentialSampler(range(22)), 3, drop_last=True)
    loader = DataLoader(options(2, 1, 2), Numbers(22), drop_last=drop_last, batch_sampler=sampler)
    assert loader.combinedBatchSize == 12
    assert [len(numbers) for _, numbers in loader] == [12] + [9] * (not drop_last)
    assert numbers_of(loader) == list(range(12 if drop_last else 21))
    assert len(loader) == (1 if drop_last else 2)


def test_joined_batches_keep_their_structure():
    def collate(samples):
        return {"x": torch.stack([x for x, _ in samples]), "rest": [torch.tensor([n for _, n in samples])]}

    loader = DataLoader(options(2), Numbers(8), batch_sampler=[[0, 1], [7, 5]], collate_fn=collate)
    (batch,) = loader
    assert batch["x"].flatten().tolist() == [0, 1, 7, 5]
    assert batch["rest"][0].tolist() == [0, 1, 7, 5]


@pytest.mark.parametrize("arguments", [{"batch_size": 2}, {"batch_size": None}, {"shuffle": True}], ids=str)
def test_a_batch_sampler_excludes_batch_size_and_shuffle(arguments):
    with pytest.raises(Error, match="batch_sampler"):
        DataLoader(Options(), Numbers(8), batch_sampler=[[0]], **arguments)


def test_a_batch_sampler_is_not_divided_among_processes():
    with pytest.raises(Error, match="auto_distributed_partitioning=False"):
        DataLoader(distributed(0, 2), Numbers(8), batch_sampler=[[0], [1]])
    loader = DataLoader(distributed(0, 2), Numbers(8), batch_sampler=[[0], [1]], auto_distributed_partitioning=False)
    assert numbers_of(loader) == [0, 1]


class Endless:
    """A batch sampler whose length cannot be had, in one of three ways."""

    batch_size = 2

    def __iter__(self):
        return iter([[0, 1], [2, 3], [4, 5]])


class LengthNotImplemented(Endless):
    def __len__(self):
        return NotImplemented


class LengthRaises(Endless):
    def __len__(self):
        raise NotImplementedError


@pytest.mark.parametrize("sampler", [Endless(), LengthNotImplemented(), LengthRaises()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("drop_last", [True, False])
def test_a_sampler_without_a_usable_length_is_only_logged(caplog, sampler, drop_last):
    caplog.set_level("INFO", "poptorch::python")
    loader = DataLoader(options(2), Numbers(8), batch_sampler=sampler, drop_last=drop_last)
    assert loader.combinedBatchSize == 4
    assert numbers_of(loader) == list(range(4 if drop_last else 6))
    assert ["no usable length" in line for line in said(caplog)] == [True] * (not drop_last)


# Streams.


def test_a_stream_is_not_divided_among_processes():
    with pytest.raises(AssertionError, match="IterableDataset"):
        DataLoader(distributed(0, 2), Stream(8))
    loader = DataLoader(distributed(0, 2), Stream(8), 4, auto_distributed_partitioning=False)
    assert [batch.flatten().tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_duplication_by_several_workers_is_warned_of(caplog):
    DataLoader(Options(), Stream(8), num_workers=1)
    DataLoader(Options(), Stream(8), num_workers=2, worker_init_fn=print)
    assert not said(caplog)
    DataLoader(Options(), Stream(8), num_workers=2)
    assert "duplicated" in said(caplog)[0]


@pytest.mark.parametrize("mode", list(DataLoaderMode))
def test_the_length_of_a_plain_stream_is_a_type_error(mode):
    loader = DataLoader(options(2), Stream(8), 2, mode=mode, async_options=FORK if mode else None)
    with pytest.raises(TypeError, match="has no len"):
        len(loader)
    loader.terminate()


# Several processes.


def test_shuffling_in_several_processes_needs_a_seed():
    with pytest.raises(AssertionError, match="randomSeed"):
        DataLoader(distributed(0, 2), Numbers(8), shuffle=True)
    DataLoader(distributed(0, 2), Numbers(8), shuffle=True, auto_distributed_partitioning=False)


def test_several_processes_need_a_batch_size():
    with pytest.raises(AssertionError, match="batch_size"):
        DataLoader(distributed(0, 2), Numbers(8), batch_size=None)


def test_a_sampler_is_not_divided_among_processes():
    with pytest.raises(Error, match="auto_distributed_partitioning=False"):
        DataLoader(distributed(0, 2), Numbers(8), sampler=RandomSampler(Numbers(8)))


@settings(deadline=None)
@given(
    samples=st.integers(1, 100),
    batch_size=st.integers(1, 4),
    iterations=st.integers(1, 3),
    processes=st.integers(1, 5),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
)
def test_no_sample_is_lost_or_doubled_over_processes(samples, batch_size, iterations, processes, drop_last, shuffle):
    loaders = [
        DataLoader(
            distributed(process, processes, seed=5, iterations=iterations),
            Numbers(samples),
            batch_size,
            shuffle,
            drop_last=drop_last,
        )
        for process in range(processes)
    ]
    step = batch_size * iterations * processes
    for _ in range(2):
        parts = [numbers_of(loader) for loader in loaders]
        together = [number for part in parts for number in part]
        assert len(set(together)) == len(together)
        assert len(together) == (samples // step * step if drop_last else samples)
    for loader in loaders:
        assert len(loader) == len(list(loader))


def test_with_drop_last_each_process_gets_consecutive_whole_steps():
    parts = [numbers_of(DataLoader(distributed(process, 2, iterations=2), Numbers(27), 3)) for process in range(2)]
    assert parts == [list(range(12)), list(range(12, 24))]


def test_without_drop_last_the_first_processes_get_one_more():
    parts = [numbers_of(DataLoader(distributed(p, 4), Numbers(10), drop_last=False)) for p in range(4)]
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_left_over_samples_are_covered_in_every_second_epoch(num_workers):
    loaders = [
        DataLoader(distributed(process, 2, seed=9), Numbers(11), 4, shuffle=True, num_workers=num_workers)
        for process in range(2)
    ]
    generator = torch.Generator().manual_seed(9)
    for epoch in range(4):
        order = torch.randperm(11, generator=generator).tolist()
        shift = 3 * (epoch % 2)
        assert [number for loader in loaders for number in numbers_of(loader)] == order[shift : shift + 8]


def test_an_asynchronous_loader_shuffles_like_the_others():
    sync, ahead = (
        DataLoader(distributed(1, 2, seed=9), Numbers(11), 4, shuffle=True, mode=mode, async_options=more)
        for mode, more in ((DataLoaderMode.Sync, None), (DataLoaderMode.Async, FORK))
    )
    assert [numbers_of(sync) for _ in range(4)] == [numbers_of(ahead) for _ in range(4)]
    ahead.terminate()


# The modes.


@settings(deadline=None, max_examples=12)
@given(
    samples=st.integers(1, 40),
    batch_size=st.integers(1, 4),
    iterations=st.integers(1, 3),
    mode=st.sampled_from(list(DataLoaderMode)),
    drop_last=st.booleans(),
    worker_size=st.none() | st.integers(1, 4),
)
def test_every_mode_yields_the_same(samples, batch_size, iterations, mode, drop_last, worker_size):
    combined = batch_size * iterations
    samples = max(samples, combined)
    extra = {}
    if mode == DataLoaderMode.AsyncRebatched:
        extra = {"rebatched_worker_size": min(worker_size, combined) if worker_size else None}
    loader = DataLoader(
        options(iterations),
        Numbers(samples),
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


def test_an_asynchronous_loader_needs_no_options():
    loader = DataLoader(options(2), TensorDataset(torch.arange(8)), 2, mode=DataLoaderMode.Async)
    assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    loader.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", list(SharingStrategy))
@pytest.mark.parametrize("mode", [DataLoaderMode.Async, DataLoaderMode.AsyncRebatched])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_every_sharing_strategy_is_honoured(strategy, mode, num_workers):
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


def test_asynchronous_without_drop_last_rebatches():
    loader = DataLoader(options(2), Numbers(9), 2, drop_last=False, mode=DataLoaderMode.Async, async_options=FORK)
    assert not loader.drop_last
    assert loader.rebatched_drop_last is False
    assert [len(numbers) for _, numbers in loader] == [4, 4, 1]
    loader.terminate()


def test_rebatching_keeps_the_users_drop_last_for_itself():
    loader = DataLoader(
        options(4), Numbers(21), 2, mode=DataLoaderMode.AsyncRebatched, rebatched_worker_size=3, async_options=FORK
    )
    assert loader.batch_size == 3
    assert not loader.drop_last
    assert loader.rebatched_drop_last
    assert loader.combinedBatchSize == 8
    assert [len(numbers) for _, numbers in loader] == [8, 8]
    assert len(loader) == 2
    loader.terminate()


def test_workers_load_pieces_not_larger_than_the_combined_batch():
    with pytest.raises(AssertionError, match="rebatched_worker_size is 9"):
        DataLoader(options(4), Numbers(20), 2, mode=DataLoaderMode.AsyncRebatched, rebatched_worker_size=9)


@pytest.mark.parametrize("mode", [DataLoaderMode.Async, DataLoaderMode.AsyncRebatched])
def test_the_rebatched_size_is_not_for_the_user_to_choose(mode):
    with pytest.raises(AssertionError, match="rebatched_size"):
        DataLoader(options(4), Numbers(20), 2, mode=mode, async_options={"rebatched_size": 8})


def test_rebatching_needs_a_known_size():
    with pytest.raises(AssertionError, match="batch_size"):
        DataLoader(Options(), Numbers(8), batch_size=None, mode=DataLoaderMode.AsyncRebatched)


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
def test_batches_of_a_sampler_arrive_in_every_mode(mode, drop_last, sizes):
    sampler = BatchSampler(SequentialSampler(range(11)), 2, drop_last=False)
    more = FORK if mode else None
    loader = DataLoader(
        options(2), Numbers(11), drop_last=drop_last, batch_sampler=sampler, mode=mode, async_options=more
    )
    assert [len(numbers) for _, numbers in loader] == sizes
    assert numbers_of(loader) == list(range(sum(sizes)))
    assert len(loader) == len(sizes)
    loader.terminate()


def test_a_batch_sampler_decides_the_size_of_the_pieces():
    with pytest.raises(AssertionError, match="rebatched_worker_size"):
        DataLoader(
            options(2),
            Numbers(8),
            batch_sampler=BatchSampler(SequentialSampler(range(8)), 2, drop_last=True),
            mode=DataLoaderMode.AsyncRebatched,
            rebatched_worker_size=2,
        )


def test_settings_without_effect_are_warned_of(caplog):
    DataLoader(Options(), Numbers(8), async_options=FORK)
    DataLoader(Options(), Numbers(8), 2, rebatched_worker_size=1)
    assert ["async_options" in line for line in said(caplog)] == [True, False]
    assert "rebatched_worker_size" in said(caplog)[1]


def test_memory_is_not_pinned_ahead_of_time(caplog):
    loader = DataLoader(Options(), Numbers(3), pin_memory=True, mode=DataLoaderMode.Async, async_options=FORK)
    assert "pin_memory" in said(caplog)[0]
    assert numbers_of(loader) == [0, 1, 2]
    loader.terminate()


def test_streams_are_rebatched():
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


def test_items_are_views_of_the_ring():
    loader = DataLoader(Options(), TensorDataset(torch.arange(9)), 1, mode=DataLoaderMode.Async, async_options=FORK)
    addresses = [batch.data_ptr() for (batch,) in loader]
    assert len(set(addresses)) == 3
    loader.terminate()


# The end.


def has_ended(process):
    """Wait for the end of a process that is not a child of this function's caller alone."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 30)[0])
    finally:
        os.close(descriptor)


def a_running_loader():
    loader = DataLoader(Options(), Numbers(9), mode=DataLoaderMode.Async, async_options=FORK)
    next(iter(loader))
    (process,) = (child.pid for child in multiprocessing.active_children() if child.name == "pilotage-fetcher")
    return loader, process


def test_terminating_ends_the_process():
    loader, process = a_running_loader()
    loader.terminate()
    assert has_ended(process)
    with pytest.raises(AssertionError, match="terminated"):
        iter(loader)


def test_a_forgotten_loader_ends_its_process_at_once():
    gc.disable()
    try:
        loader, process = a_running_loader()
        del loader
        assert has_ended(process)
    finally:
        gc.enable()


def test_terminating_a_synchronous_loader_is_harmless():
    loader = DataLoader(Options(), Numbers(3))
    loader.terminate()
    assert numbers_of(loader) == [0, 1, 2]
