"""Which batch an update trained on, where scripts load batches ahead."""

import sys
from threading import Thread

import pytest
import torch

from pilotage.proof.running import run_watched
from pilotage.proof.watching.ahead import LoadedAhead, addresses_of, places_of
from pilotage.proof.watching.loaders import Load
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Pending

DATA = """
import queue, threading
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
data = TensorDataset(torch.randn(48, 6), torch.randn(48, 1))
others = DataLoader(TensorDataset(torch.randn(16, 6)), batch_size=4)
model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8, shuffle=True)
def train(x, y, between=lambda: None):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    between()
    optimizer.step()
def evaluate():
    with torch.no_grad():
        for (x,) in others: model(x)
"""
PLAIN = """
for epoch in range(3):
    for x, y in loader: train(x, y)
    evaluate()
"""
ONE = """
for epoch in range(3):
    batches = iter(loader)
    following = next(batches)
    while following is not None:
        x, y = following
        following = next(batches, None)
        train(x, y)
    evaluate()
"""
COMPUTED = ONE.replace("train(x, y)", "train(x * 1.0, y)")
TWO = """
for epoch in range(3):
    batches = iter(loader)
    waiting = [next(batches), next(batches)]
    while waiting:
        x, y = waiting.pop(0)
        waiting += [each for each in [next(batches, None)] if each is not None]
        train(x, y)
    evaluate()
"""
BEFORE_STEP = """
for epoch in range(3):
    batches = iter(loader)
    following = next(batches)
    def load():
        global following
        following = next(batches, None)
    while following is not None: train(*following, load)
    evaluate()
"""
COUNTED = """
for epoch in range(3):
    batches = iter(loader)
    following = next(batches)
    for number in range(len(loader)):
        x, y = following
        if number < len(loader) - 1: following = next(batches)
        train(x, y)
    evaluate()
"""
THREAD = """
def produce(into):
    for batch in loader: into.put(batch)
    into.put(None)
for epoch in range(3):
    waiting = queue.Queue(maxsize=2)
    threading.Thread(target=produce, args=[waiting], daemon=True).start()
    while (batch := waiting.get()) is not None: train(*batch)
    evaluate()
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    def run(text):
        folder = tmp_path_factory.mktemp("ahead")
        (folder / "script.py").write_text(DATA + text)
        settings = WatchSettings(folder=str(folder / "record"), steps=15)
        return run_watched("AFTER", [sys.executable, str(folder / "script.py")], settings, timeout=60).record.first

    return run


@pytest.fixture(scope="module")
def plain(record):
    return record(PLAIN)


@pytest.mark.slow
@pytest.mark.parametrize("text", [ONE, COMPUTED, TWO, BEFORE_STEP, COUNTED, THREAD])
def test_a_script_that_loads_ahead_is_recorded_as_one_that_does_not(record, plain, text):
    found = record(text)
    assert [each.indices for each in found.updates] == [each.indices for each in plain.updates]
    assert [each.losses for each in found.updates] == [each.losses for each in plain.updates]
    assert not any(each.fields["skipped"] for each in found.updates)


@pytest.mark.slow
def test_a_softmax_over_a_batch_that_was_loaded_before_another_is_found(record):
    found = record(ONE.replace("train(x, y)", "train(x, y * torch.softmax(model(x), 0).detach())"))
    assert [each["line"] is not None for each in found.named("split")] == [True]


class Steps:
    """Loads batches of two rows, and makes updates."""

    def __init__(self):
        self.ahead, self.pending, self.kept, self.made = LoadedAhead(), Pending(), [], 0

    def load(self, loader=0, samples=2):
        tensor = torch.zeros(samples, 2)
        load = Load(loader, 0, [self.made], samples)
        load.places = places_of([tensor])
        self.made += 1
        self.pending.batches.append(load)
        return tensor

    def update(self, *given):
        """What the update trained on, and what it skipped."""
        if self.pending.batches:
            self.ahead.at_backward(self.pending, addresses_of(given), 2)
        later, early = self.ahead.leave_out(self.pending)
        done, self.pending = self.pending, Pending()
        self.pending.batches, self.pending.used = later, early
        own = [each for each in done.batches if each.loader == done.loader]
        return (
            [each.indices[0] for each in own if not each.is_skipped],
            [each.indices[0] for each in own if each.is_skipped],
        )


@pytest.fixture
def steps():
    return Steps()


def test_batches_in_front_of_the_one_that_was_given_are_skipped(steps):
    for number in range(3):
        steps.load()
        given = steps.load()
        assert steps.update(*([given] if number < 2 else [])) == ([2 * number + 1], [2 * number])
    assert not steps.ahead.is_ahead


def test_batches_behind_the_one_that_was_given_are_for_later_updates(steps):
    given = [steps.load(), steps.load()]
    steps.load()
    assert steps.update(given[0]) == ([0], [])
    steps.load()
    assert steps.update(given[1]) == ([1], [])
    # Two at once from now on: one of them is never given.
    for number in range(2):
        steps.load(), steps.load()
        assert steps.update() == ([3 + 2 * number], [2 + 2 * number])


def test_a_view_of_a_batch_is_the_batch_and_memory_that_was_used_again_is_not(steps):
    given = steps.load().view(4)
    steps.load()
    assert steps.update(given) == ([0], [])
    load = Load(0, 0, [0], 2)
    load.places = places_of([torch.zeros(2)])
    addresses = {address for address, _ in load.places}
    assert load.places[0][1].expired()
    steps = Steps()
    steps.pending.batches.append(load)
    last = steps.load()
    steps.ahead.at_backward(steps.pending, addresses | addresses_of([last]), 2)
    assert load.is_skipped


class OnACard:
    """A copy of a tensor on another device."""

    is_cpu, layout = False, torch.strided

    def __init__(self, tensor):
        self.elements = tensor.reshape(-1)

    def numel(self):
        return len(self.elements)

    def contiguous(self):
        return self

    def as_strided(self, *given):
        return OnACard(self.elements.as_strided(*given))

    def clone(self):
        return self

    def cpu(self):
        return self.elements


def test_a_batch_that_was_copied_to_another_device_is_found_by_its_values():
    ahead, pending = LoadedAhead(), Pending()
    batches = [torch.randn(8, 5) for _ in range(4)]
    for batch in batches:
        load = Load(0, 0, list(range(8)), 8)
        load.tensors = [batch]
        load.pick()
        pending.batches.append(load)
    given = OnACard(batches[-1])
    # The script has left out three batches, after a look at their losses.
    ahead.at_backward(pending, {1}, 8, [given])
    assert [load.is_skipped for load in pending.batches] == [True, True, True, False]
    assert not ahead.is_ahead


def test_a_second_backward_pass_takes_no_batch_that_is_for_later(steps):
    given = steps.load()
    steps.load()
    assert steps.update(given) == ([0], [])
    assert steps.update() == ([], [])
    steps.load()
    assert steps.update() == ([1], [])


def test_what_was_skipped_before_the_first_update_is_taken_to_be_ahead_if_the_input_is_computed(steps):
    steps.load(), steps.load()
    for number in range(3):
        assert steps.update(torch.zeros(2, 2)) == ([number], [])
        steps.load()


def test_an_evaluation_does_not_use_up_what_was_loaded_ahead(steps):
    given = steps.load()
    steps.load()
    steps.update(given)
    steps.load()
    for _ in range(3):
        steps.load(loader=1)
    assert steps.update() == ([1], [])
    steps.load()
    assert steps.update() == ([2], [])


def test_batches_of_another_thread_are_taken_in_their_order(steps):
    def load():
        for _ in range(4):
            steps.load()

    thread = Thread(target=load)
    thread.start()
    thread.join()
    assert [steps.update() for _ in range(5)] == [([0], []), ([1], []), ([2], []), ([3], []), ([], [])]


def test_tensors_without_an_address_have_no_place():
    assert not places_of([torch.eye(2).to_sparse(), torch.empty(0)])
    assert torch.func.vmap(lambda row: row + len(addresses_of([row])))(torch.zeros(2, 3)).sum() == 0
