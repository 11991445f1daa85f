"""Where epochs start and end, and what is prefetched."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from functools import partial

import pytest
import torch

from pilotage.data import Prefetcher, SharingMode

pytestmark = pytest.mark.slow

forked = partial(Prefetcher, sharing_mode=SharingMode.FORK)


class Announcing:
    """Yields numbers, and reports through a pipe when each is read."""

    def __init__(self, length):
        self.length = length
        self.heard, self.said = multiprocessing.Pipe(duplex=False)

    def __iter__(self):
        for number in range(self.length):
            self.said.send(number)
            yield torch.tensor([number])
        self.said.send("end")

    def __len__(self):
        return self.length


def test_an_epoch_can_be_restarted_in_the_middle():
    prefetcher = forked([torch.tensor([number]) for number in range(10)])
    for stop_after in (0, 1, 5, 9, 10, 3):
        iterator = iter(prefetcher)
        assert iterator is prefetcher
        assert [int(next(iterator)) for _ in range(stop_after)] == list(range(stop_after))
    assert [int(item) for item in prefetcher] == list(range(10))
    prefetcher.terminate()


def test_after_an_interrupt_the_next_epoch_is_complete():
    here, there = multiprocessing.Pipe(duplex=False)

    class Waiting:
        def __iter__(self):
            for number in range(6):
                if number == 4:
                    here.recv()
                yield torch.tensor([number])

    prefetcher = forked(Waiting())
    assert [int(next(prefetcher)) for _ in range(4)] == [0, 1, 2, 3]
    interrupt = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        next(prefetcher)
    for _ in range(8):
        there.send("go on")
    for _ in range(3):
        assert [int(item) for item in prefetcher] == list(range(6))
    prefetcher.terminate()


def test_asking_for_an_iterator_twice_does_not_skip_an_epoch():
    class Epochs:
        epoch = -1

        def __iter__(self):
            self.epoch += 1
            return iter([torch.tensor([self.epoch])])

    prefetcher = forked(Epochs())
    assert [int(item) for item in iter(iter(prefetcher))] == [0]
    assert [int(item) for item in prefetcher] == [1]
    prefetcher.terminate()


def test_an_exhausted_epoch_stays_exhausted_until_it_is_restarted():
    prefetcher = forked([torch.tensor([1])])
    assert int(next(prefetcher)) == 1
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(prefetcher)
    assert len(list(prefetcher)) == 1
    prefetcher.terminate()


def test_an_iterable_that_is_exhausted_for_good_gives_empty_epochs():
    prefetcher = forked(iter([torch.tensor([1]), torch.tensor([2])]))
    assert [int(item) for item in prefetcher] == [1, 2]
    assert list(prefetcher) == []
    assert list(prefetcher) == []
    prefetcher.terminate()


def test_only_the_first_item_is_read_before_iteration():
    source = Announcing(5)
    prefetcher = forked(source)
    assert source.heard.recv() == 0
    assert not source.heard.poll(0.3)
    assert len(list(prefetcher)) == 5
    prefetcher.terminate()


def test_an_early_preload_fills_the_ring_before_iteration():
    source = Announcing(5)
    prefetcher = forked(source, early_preload=True, buffer_size=3)
    # Three items fill the ring, and the fetcher holds a fourth.
    assert [source.heard.recv() for _ in range(4)] == [0, 1, 2, 3]
    assert not source.heard.poll(0.3)
    prefetcher.terminate()


@pytest.mark.parametrize("load_indefinitely", [True, False])
def test_the_next_epoch_is_prefetched_only_if_requested(load_indefinitely):
    source = Announcing(2)
    prefetcher = forked(source, load_indefinitely=load_indefinitely)
    assert len(list(prefetcher)) == 2
    assert [source.heard.recv() for _ in range(3)] == [0, 1, "end"]
    if load_indefinitely:
        assert source.heard.recv() == 0
    else:
        assert not source.heard.poll(0.3)
    assert len(list(prefetcher)) == 2
    prefetcher.terminate()


def test_after_a_miss_the_reader_sleeps_before_it_waits(monkeypatch):
    naps = []
    monkeypatch.setattr("pilotage.data.prefetcher.time.sleep", naps.append)
    prefetcher = forked([torch.tensor([0])], miss_sleep_seconds=0.25)
    list(prefetcher)
    assert set(naps) == {0.25}
    prefetcher.terminate()
