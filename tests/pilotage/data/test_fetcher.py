"""The background process, spoken to directly: what it loads ahead, what it throws away, and how it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.reduction import recv_handle

import pytest
import torch

from pilotage.data.fetcher import FetchTask, run_fetcher
from pilotage.data.messages import Advance, EpochEnd, Failed, Item, Ready, Release, Stop
from pilotage.data.random_state import RandomState
from pilotage.data.ring import Ring
from pilotage.program.structure import unflatten

SECONDS = 60
QUIET_SECONDS = 0.3
"""How long a fetcher that has nothing to do is watched."""


def items(count=4, rows=2):
    return [{"x": torch.full((rows, 3), float(number)), "y": torch.tensor(number)} for number in range(count)]


class Consumer:
    """The other end of a fetcher."""

    def __init__(self, iterable, **settings):
        task = FetchTask(
            **{
                "iterable": iterable,
                "parsers": {},
                "chunks": 2,
                "ring_on_disk": False,
                "load_indefinitely": False,
                "early_preload": False,
                "rebatched_size": None,
                "drop_last": True,
                "random_state": RandomState.current(),
                "start_method": None,
            }
            | settings
        )
        self.chunks = task.chunks
        self.connection, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=run_fetcher, args=(theirs, task, self.connection))
        self.process.start()
        theirs.close()

    def send(self, *messages):
        for message in messages:
            self.connection.send(message)

    def receive(self):
        assert self.connection.poll(SECONDS), "the fetcher says nothing"
        return self.connection.recv()

    def is_quiet(self):
        return not self.connection.poll(QUIET_SECONDS)

    def ready(self):
        message = self.receive()
        assert isinstance(message, Ready), message
        self.structure = message.structure
        descriptor = recv_handle(self.connection)
        self.ring = Ring(descriptor, message.layout, self.chunks)
        os.close(descriptor)
        return message

    def value(self, item):
        return unflatten(self.structure, self.ring.read(item.chunk, item.rows))

    def epoch(self, number):
        """The items of an epoch; each chunk is released when it was read."""
        found = []
        while not isinstance(message := self.receive(), EpochEnd):
            assert message.epoch == number
            found.append({name: tensor.clone() for name, tensor in self.value(message).items()})
            self.send(Release())
        assert message.epoch == number
        return found

    def end(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()


@pytest.fixture
def consumer():
    started = []

    def start(iterable, **settings):
        started.append(Consumer(iterable, **settings))
        return started[-1]

    yield start
    for each in started:
        each.end()


def test_epochs_deliver_every_item_in_order(consumer):
    fetcher = consumer(items())
    assert fetcher.ready().first_rows == 2
    for epoch in range(2):
        fetcher.send(Advance(epoch))
        torch.testing.assert_close(fetcher.epoch(epoch), items(), rtol=0, atol=0)


def test_no_epoch_begins_before_it_is_wanted(consumer):
    fetcher = consumer(items())
    fetcher.ready()
    assert fetcher.is_quiet()
    fetcher.send(Advance(0))
    fetcher.epoch(0)
    assert fetcher.is_quiet()


def test_at_most_all_chunks_are_filled_ahead(consumer):
    fetcher = consumer(items(), chunks=3)
    fetcher.ready()
    fetcher.send(Advance(0))
    assert [fetcher.receive() for _ in range(3)] == [Item(0, chunk, (2, 1)) for chunk in range(3)]
    assert fetcher.is_quiet()
    fetcher.send(Release())
    assert fetcher.receive() == Item(0, 0, (2, 1))


def test_a_fetcher_that_may_preload_does_not_wait(consumer):
    fetcher = consumer(items(), early_preload=True)
    fetcher.ready()
    assert fetcher.receive() == Item(0, 0, (2, 1))


def test_the_next_epoch_is_loaded_ahead_if_that_is_wanted(consumer):
    fetcher = consumer(items(1), load_indefinitely=True)
    fetcher.ready()
    fetcher.send(Advance(0))
    assert [fetcher.receive() for _ in range(4)] == [
        Item(0, 0, (2, 1)),
        EpochEnd(0),
        Item(1, 1, (2, 1)),
        EpochEnd(1),
    ]
    assert fetcher.is_quiet()


def test_an_abandoned_epoch_frees_its_chunks(consumer):
    fetcher = consumer(items())
    fetcher.ready()
    fetcher.send(Advance(0))
    assert [fetcher.receive().chunk for _ in range(2)] == [0, 1]
    fetcher.send(Advance(1))
    first = fetcher.receive()
    assert (first.epoch, float(fetcher.value(first)["x"][0, 0])) == (1, 0.0)


def test_items_are_cut_and_joined_to_the_wanted_rows(consumer):
    batches = [{"x": torch.arange(6.0).reshape(3, 2) + 6 * number} for number in range(3)]
    fetcher = consumer(batches, rebatched_size=4, drop_last=False)
    assert fetcher.ready().first_rows == 3
    fetcher.send(Advance(0))
    found = fetcher.epoch(0)
    assert [len(each["x"]) for each in found] == [4, 4, 1]
    torch.testing.assert_close(torch.cat([each["x"] for each in found]), torch.arange(18.0).reshape(9, 2))


def failure_of(fetcher):
    message = fetcher.receive()
    assert isinstance(message, Failed), message
    fetcher.process.join(SECONDS)
    assert fetcher.process.exitcode == 0
    return message.report


@pytest.mark.parametrize(
    ("settings", "iterable", "reason"),
    [
        ({}, [], "The dataset is empty"),
        ({"rebatched_size": 10}, [{"x": torch.zeros(2, 3)}] * 2, "10"),
        ({}, [torch.zeros(2), (torch.zeros(2), torch.zeros(2))], None),
    ],
)
def test_what_cannot_be_loaded_is_reported(consumer, settings, iterable, reason):
    fetcher = consumer(iterable, **settings)
    if reason is None:
        fetcher.ready()
        fetcher.send(Advance(0))
        fetcher.receive()
        reason = "Items must be alike"
    assert reason in failure_of(fetcher)


def test_an_error_of_the_iterable_is_reported_with_its_line(consumer):
    def broken():
        yield torch.zeros(1)
        raise ValueError("a broken file")

    fetcher = consumer(broken())
    fetcher.ready()
    fetcher.send(Advance(0))
    fetcher.receive()
    report = failure_of(fetcher)
    assert "ValueError: a broken file" in report
    assert "test_fetcher.py" in report


def test_random_numbers_continue_from_those_of_the_consumer(consumer):
    def noise():
        for _ in range(2):
            yield torch.rand(3)

    torch.manual_seed(5)
    fetcher = consumer(noise())
    fetcher.ready()
    fetcher.send(Advance(0))
    found = [fetcher.value(fetcher.receive()).clone() for _ in range(2)]
    torch.manual_seed(5)
    torch.testing.assert_close(found, [torch.rand(3), torch.rand(3)], rtol=0, atol=0)


@pytest.mark.parametrize("end", ["stop", "close"])
def test_a_fetcher_ends_when_it_is_asked_to_or_left(consumer, end):
    fetcher = consumer(items())
    fetcher.ready()
    if end == "stop":
        fetcher.send(Stop())
    else:
        fetcher.connection.close()
    fetcher.process.join(SECONDS)
    assert fetcher.process.exitcode == 0


def test_an_interrupt_is_left_to_the_consumer_and_a_termination_obeyed(consumer):
    fetcher = consumer(items())
    fetcher.ready()
    os.kill(fetcher.process.pid, signal.SIGINT)
    fetcher.send(Advance(0))
    assert isinstance(fetcher.receive(), Item)
    fetcher.process.terminate()
    fetcher.process.join(SECONDS)
    assert fetcher.process.exitcode == 128 + signal.SIGTERM
