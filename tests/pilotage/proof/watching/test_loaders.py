import gc
from collections import deque

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset

from pilotage.data.partition import Shard
from pilotage.proof.records import read_run
from pilotage.proof.watching.loaders import Load, LoaderWatch, _Batches, _count, _enlarged, _plain, _shuffled
from pilotage.proof.watching.random_numbers import reseed, shared_order
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.shards import _interleaved
from pilotage.proof.watching.watch import EnoughSteps, Watch


def test_a_load_is_divided_among_the_updates_of_a_call():
    load = Load(0, 2, list(range(12)), 12)
    assert [load.part(number, 3).indices for number in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert load.part(1, 3).samples == 4


def test_samples_without_indices_are_told_apart_by_their_values():
    values = torch.arange(12.0).view(4, 3)
    load = Load(0, 0, None, 4)
    load.tensors = [values]
    load.let_go()
    assert len(set(load.content)) == 4
    assert load.part(1, 2).content == load.content[2:]
    assert not load.tensors


def test_a_batch_is_written_as_it_was_when_the_script_got_it():
    values = torch.arange(12.0).view(4, 3)
    loads = [Load(0, 0, [0, 1, 2, 3], 4) for _ in range(2)]
    for load in loads:
        load.tensors = [values]
        load.pick()
        load.let_go()
        values += 1
    assert [load.as_row()[-1] for load in loads] == [[66.0], [78.0]]


def test_indices_of_a_subset_are_those_of_the_whole_data_set():
    whole = TensorDataset(torch.zeros(10, 1))
    assert _plain([0, 2], Subset(Subset(whole, [9, 8, 7, 6]), [1, 2, 3])) == [8, 6]
    assert _plain([None], whole) is None


def test_batches_become_larger_however_their_size_is_given():
    assert _enlarged((1, 8), {}, 3) == ((1, 24), {})
    assert _enlarged((1,), {"batch_size": 8}, 3) == ((1,), {"batch_size": 24})
    assert _enlarged((1,), {}, 3) == ((1,), {"batch_size": 3})
    assert _enlarged((1,), {"batch_size": None}, 3) == ((1,), {"batch_size": None})


def test_the_order_depends_on_seed_epoch_and_length_only():
    torch.manual_seed(1)
    first = shared_order(5, 0, 20)
    torch.manual_seed(2)
    assert torch.equal(first, shared_order(5, 0, 20))
    assert not torch.equal(first, shared_order(5, 1, 20))
    assert sorted(first.tolist()) == list(range(20))


def test_processes_together_get_what_one_would_get_update_by_update():
    shares = [_interleaved(range(24), 4, Shard(process=rank, processes=2), 12) for rank in range(2)]
    for update in range(3):
        together = [index for share in shares for index in share[4 * update : 4 * update + 4]]
        assert sorted(together) == list(range(8 * update, 8 * update + 8))


@pytest.mark.parametrize(
    ("late", "yielded", "backwards", "goes_on"),
    [(True, 0, 1, True), (True, 1, 1, False), (False, 9, 1, False), (True, 3, 4, True), (True, 4, 4, False)],
)
def test_a_training_loader_ends_after_the_last_update_and_later_epochs_get_the_batches_of_one(
    tmp_path, late, yielded, backwards, goes_on
):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=1))
    watch.pending.backwards = backwards
    watch.close({})
    watch.trained_loaders = {0}
    loaders = LoaderWatch(watch)
    assert loaders.may_yield(0, late, yielded) is goes_on
    assert loaders.may_yield(1, late, 2)
    assert not loaders.may_yield(1, late, 3)


def test_a_script_that_begins_epoch_after_epoch_without_an_update_is_ended(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=1))
    watch.close({})
    watch.trained_loaders = {0}
    loaders = LoaderWatch(watch)
    assert all(loaders.may_yield(0, True, 0) for _ in range(100))
    with pytest.raises(EnoughSteps):
        loaders.may_yield(0, True, 0)
    assert read_run(tmp_path).first.end["how"] == "stopped"


@pytest.fixture
def ended(tmp_path):
    """A loader of 50 batches in the middle of its only epoch, after the last recorded update."""
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=1))
    loader = DataLoader(range(100), batch_size=2)
    batches = _Batches(LoaderWatch(watch), loader, iter(loader), deque())
    watch.trained_loaders = {0}
    next(batches)
    watch.close({})
    return batches


def test_code_that_asks_for_one_batch_and_knows_no_end_gets_it(ended):
    assert [next(ended).tolist() for _ in range(40)][-1] == [80, 81]


def test_code_that_asks_for_one_batch_until_the_end_comes_to_an_end(ended):
    count = 0
    while True:
        try:
            next(ended)
        except StopIteration:
            break
        count += 1
    assert count == 0


@pytest.mark.parametrize("loop", [enumerate, lambda batches: zip(batches, range(50), strict=False), iter])
def test_loops_come_to_an_end(ended, loop):
    for _ in loop(ended):
        pytest.fail("another batch came")


def test_a_loader_at_the_address_of_an_earlier_one_gets_another_number(tmp_path):
    loaders = LoaderWatch(Watch(WatchSettings(folder=str(tmp_path), steps=1)))
    numbers = []
    for _ in range(20):
        # Freed at once, so that the next one takes its place in memory.
        numbers.append(loaders.number_of(DataLoader(list(range(4)))))
    assert numbers == list(range(20))


def test_after_the_last_batch_random_numbers_are_those_of_the_next_forward_pass(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=5))
    loader = DataLoader(list(range(4)), batch_size=2)
    batches = _Batches(LoaderWatch(watch), loader, iter(loader), deque())
    assert len(list(batches)) == 2
    assert [load.is_last for load in watch.pending.batches] == [False, True]
    drawn = torch.rand(3)
    reseed(watch.settings.seed, 0, 0)
    assert torch.equal(drawn, torch.rand(3))


@pytest.fixture
def iterated(tmp_path):
    """Begin epochs as the patched loaders of a watched process do; the samples of each, with its loader's number."""
    watch = Watch(WatchSettings(folder=str(tmp_path), steps=50))
    loaders = LoaderWatch(watch)
    begin, shuffled = loaders._iterated(DataLoader.__iter__), _shuffled(RandomSampler.__iter__, 0)

    class Sampler(RandomSampler):
        def __iter__(self):
            return shuffled(self)

    def make(size=12):
        loader = DataLoader(range(size), batch_size=4, sampler=Sampler(range(size)))
        loaders._announce(loader)
        return loader

    def epoch(loader):
        samples = [int(each) for batch in begin(loader) for each in batch]
        loads, watch.pending.batches = watch.pending.batches, []
        return samples, {(load.loader, load.epoch) for load in loads}

    return make, epoch


def test_loaders_that_are_made_in_each_epoch_yield_the_orders_of_one_that_is_kept(iterated):
    make, epoch = iterated
    kept = make()
    orders = [epoch(kept) for _ in range(3)]
    assert len({tuple(samples) for samples, _ in orders}) == 3
    assert [found for _, found in orders] == [{(0, 0)}, {(0, 1)}, {(0, 2)}]
    in_each_epoch = [epoch(make()) for _ in range(3)]
    assert [samples for samples, _ in in_each_epoch] == [samples for samples, _ in orders]
    assert [found for _, found in in_each_epoch] == [{(1, 0)}, {(1, 1)}, {(1, 2)}]


def test_loaders_of_one_line_that_live_together_count_apart(iterated):
    make, epoch = iterated
    pair = [make() for _ in range(2)]
    first, second = ([epoch(each) for each in pair] for _ in range(2))
    assert first[0][0] == first[1][0]
    assert second[0][0] == second[1][0] != first[0][0]
    assert [found for _, found in (*first, *second)] == [{(0, 0)}, {(1, 0)}, {(0, 1)}, {(1, 1)}]


@pytest.mark.parametrize("length", [2**64, -1, None, "many"])
def test_a_sampler_may_have_any_length(length):
    class Sampler:
        def __len__(self):
            return length

    assert _count(Sampler()) is None


def test_a_sampler_may_refuse_its_length():
    class Sampler:
        def __len__(self):
            raise RuntimeError("endless")

    assert _count(Sampler()) is None


def test_a_loader_in_a_reference_cycle_is_replaced_like_any_other(iterated):
    make, epoch = iterated
    found = []
    gc.disable()
    try:
        for _ in range(2):
            loader = make()
            loader.__dict__["itself"] = loader
            found.append(epoch(loader)[1])
            del loader
    finally:
        gc.enable()
    assert found == [{(0, 0)}, {(0, 1)}]
