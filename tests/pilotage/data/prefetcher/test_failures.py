"""Failures in the background process, and refused options."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
from functools import partial

import pytest
import torch

from pilotage.data import Prefetcher, SharingMode
from pilotage.errors import FetchError, FetchStartError, OptionError

pytestmark = pytest.mark.slow

forked = partial(Prefetcher, sharing_mode=SharingMode.FORK)


class Breaking:
    """Yields tensors for a while, then does something else."""

    def __init__(self, length, action):
        self.length, self.action = length, action

    def __iter__(self):
        for number in range(self.length):
            yield torch.tensor([number])
        self.action()


def fail():
    raise ValueError("a bad sample")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("nothing_left_behind")
@pytest.mark.parametrize(
    ("iterable", "message"),
    [
        (Breaking(0, fail), "ValueError: a bad sample"),
        (Breaking(0, lambda: None), "The dataset is empty"),
        (Breaking(0, die), "exit code -9"),
        ([[torch.ones(1), "text"]], r"not list \['Tensor', 'str'\]"),
        ([torch.ones(1)], "does not fit"),
    ],
    ids=["fails", "empty", "killed", "not tensors", "no room"],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(iterable, message):
    chunks = (1 << 50) if message == "does not fit" else 3
    with pytest.raises(FetchStartError, match=message):
        forked(iterable, buffer_size=chunks)
    gc.collect()
    assert not multiprocessing.active_children()


def test_a_failure_arrives_after_all_items_read_before_it():
    prefetcher = forked(Breaking(5, fail), buffer_size=8)
    assert [int(next(prefetcher)) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(FetchError, match="ValueError: a bad sample"):
        next(prefetcher)
    with pytest.raises(FetchError, match="a bad sample"):
        next(prefetcher)
    with pytest.raises(FetchError, match="a bad sample"):
        iter(prefetcher)


def test_a_failure_in_the_next_epoch_does_not_cut_this_one_short():
    class GoodOnce:
        epochs = 0

        def __iter__(self):
            self.epochs += 1
            if self.epochs > 1:
                fail()
            return iter([torch.tensor([number]) for number in range(6)])

    prefetcher = forked(GoodOnce(), buffer_size=8)
    assert [int(item) for item in prefetcher] == list(range(6))
    with pytest.raises(FetchError, match="a bad sample"):
        list(prefetcher)


def test_a_process_that_is_killed_is_reported_with_its_signal():
    prefetcher = forked(Breaking(3, die))
    with pytest.raises(FetchError, match="exit code -9"):
        list(prefetcher)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (torch.ones(3), r"shape \(3,\)"),
        (torch.full((2,), 2**24 + 1), "torch.int64"),
        ([torch.ones(2)], "Items must be alike"),
        ("text", "not str"),
    ],
    ids=["longer", "type with other values", "other kind", "no tensor"],
)
def test_an_item_unlike_the_first_is_refused(later, message):
    prefetcher = forked([torch.ones(2), later])
    with pytest.raises(FetchError, match=message):
        list(prefetcher)


def test_an_unpicklable_dataset_is_refused_with_a_remedy():
    with pytest.raises(FetchStartError, match=r"picklable.*SharingMode\.FORK"):
        Prefetcher([lambda: None], sharing_mode=SharingMode.FORK_SERVER)


def test_too_many_tensors_to_share_are_refused_with_the_remedy():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    samples = [torch.ones(1) for _ in range(200)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 50, hard))
    try:
        with pytest.raises(FetchStartError, match="another sharing mode"):
            Prefetcher(samples, sharing_mode=SharingMode.SHARED_MEMORY)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "arguments",
    [{"buffer_size": 0}, {"miss_sleep_seconds": -1.0}, {"rebatched_size": 0}],
    ids=lambda each: next(iter(each)),
)
def test_invalid_settings_are_refused(arguments):
    with pytest.raises(OptionError, match=next(iter(arguments))):
        forked([torch.ones(1)], **arguments)
