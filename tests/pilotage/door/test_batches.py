"""Batches of torch's loaders, combined for the calls of a wrapped model."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import pilotage
from pilotage.errors import InputError, OptionError


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def wrapped(**options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, pilotage.training(model, optimizer, loss=nn.MSELoss(), tier="graph", **options)


class Counting(IterableDataset):
    """A stream of numbered samples, divided among the workers."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, by = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.count, by):
            yield torch.full((3,), float(number)), torch.zeros(2)


def data(count=29):
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(count, 3, generator=generator), torch.randn(count, 2, generator=generator))


def rows(batches):
    return [len(x) for x, _ in batches]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [4, 4, 4, 4, 4, 4, 4, 1]),
        ({"device_iterations": 3}, [12, 12, 4, 1]),
        ({"device_iterations": 2, "gradient_accumulation": 2}, [16, 8, 4, 1]),
        ({"device_iterations": 7}, [28, 1]),
    ],
)
def test_an_epoch_is_divided_into_calls_without_losing_a_sample(options, expected):
    _, step = wrapped(**options)
    batches = pilotage.batches(DataLoader(data(), batch_size=4), step)
    assert rows(batches) == expected
    assert len(batches) == len(expected)
    assert torch.equal(torch.cat([x for x, _ in batches]), data().tensors[0])


def test_replicas_leave_out_what_does_not_fill_an_update_with_a_warning():
    _, step = wrapped(device_iterations=2, replicas=2)
    batches = pilotage.batches(DataLoader(data(), batch_size=4), step)
    with pytest.warns(UserWarning, match="1 batches do not fill an update, which takes 2"):
        assert rows(batches) == [16, 8]
    assert len(batches) == 2


@pytest.mark.parametrize("options", [{"device_iterations": 3}, {"device_iterations": 2, "gradient_accumulation": 2}])
def test_epochs_train_as_in_eager(options):
    theirs = copy.deepcopy(wrapped()[0])
    mine, step = wrapped(**options)
    eager = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    accumulation = options.get("gradient_accumulation", 1)
    for epoch in range(2):
        loader = DataLoader(data(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(epoch))
        waiting = []
        for number, batch in enumerate(loader):
            waiting.append(batch)
            is_odd_next = number + 2 == len(loader)
            if len(waiting) == accumulation or is_odd_next or number + 1 == len(loader):
                eager.zero_grad()
                for x, y in waiting:
                    (nn.functional.mse_loss(theirs(x), y) / len(waiting)).backward()
                eager.step()
                waiting = []
        loader = DataLoader(data(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(epoch))
        for x, y in pilotage.batches(loader, step):
            step(x, y)
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_with_workers_is_read_ahead_in_the_loaders_order(workers):
    _, step = wrapped(device_iterations=2)
    loader = DataLoader(Counting(22), batch_size=4, num_workers=workers)
    expected = torch.cat([x for x, _ in loader])
    assert torch.equal(torch.cat([x for x, _ in pilotage.batches(loader, step)]), expected)
    assert not [each for each in threading.enumerate() if each.name == "pilotage-batches"]


def test_a_data_set_in_this_process_is_not_read_ahead_unless_asked():
    drawn = []

    class Noisy(TensorDataset):
        def __getitem__(self, index):
            drawn.append(index)
            return super().__getitem__(index)

    _, step = wrapped(device_iterations=2)
    loader = DataLoader(Noisy(*data(24).tensors), batch_size=4)
    next(iter(pilotage.batches(loader, step)))
    assert drawn == list(range(8))
    assert rows(pilotage.batches(loader, step, ahead=2)) == [8, 8, 8]


def test_dictionaries_and_lists_keep_their_form():
    _, step = wrapped(device_iterations=2)
    samples = [{"x": torch.ones(3), "name": "one"} for _ in range(4)]
    (batch,) = pilotage.batches(DataLoader(samples, batch_size=2), step)
    assert batch["x"].shape == (4, 3)
    assert batch["name"] == ["one"] * 4


def test_an_error_of_the_data_set_is_raised_and_the_thread_ends():
    def broken():
        yield torch.ones(2, 3), torch.ones(2, 2)
        raise ValueError("broken sample")

    _, step = wrapped()
    with pytest.raises(ValueError, match="broken sample"):
        list(pilotage.batches(broken(), step, ahead=2))
    assert not [each for each in threading.enumerate() if each.name == "pilotage-batches"]


def test_leaving_an_epoch_early_ends_the_thread():
    _, step = wrapped()
    for _ in pilotage.batches(DataLoader(data(), batch_size=1), step, ahead=1):
        break
    assert not [each for each in threading.enumerate() if each.name == "pilotage-batches"]


def test_sequences_are_padded_to_buckets():
    _, step = wrapped(device_iterations=2)
    lengths = [3, 4, 6, 7, 8]
    loader = [
        {"ids": torch.ones(2, n, dtype=torch.int64), "labels": torch.ones(2, n), "y": torch.ones(2)} for n in lengths
    ]
    found = list(pilotage.batches(loader, step, buckets=[4, 8], padding={"labels": -100}))
    assert [tuple(batch["ids"].shape) for batch in found] == [(4, 4), (4, 8), (2, 8)]
    assert found[0]["ids"][0].tolist() == [1, 1, 1, 0]
    assert found[0]["labels"][0].tolist() == [1, 1, 1, -100]
    assert found[0]["y"].shape == (4,)
    with pytest.raises(InputError, match="length 9, but the longest of the buckets is 8"):
        list(pilotage.batches([torch.ones(2, 9)], step, buckets=[4, 8]))


def test_wrong_settings_are_refused():
    _, step = wrapped()
    with pytest.raises(OptionError, match="ahead is -1"):
        pilotage.batches([], step, ahead=-1)
    with pytest.raises(OptionError, match=r"buckets is \[\]"):
        pilotage.batches([], step, buckets=[])
    with pytest.raises(TypeError, match="has no length"):
        len(pilotage.batches(iter([]), step))
