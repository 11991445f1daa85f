"""The end of a prefetcher, and of the processes that it started."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.util
import signal
from functools import partial

import pytest
import torch
from torch.utils.data import TensorDataset

from pilotage.data import Loader, Prefetcher, SharingMode
from pilotage.errors import FetchError, FetchStartError

pytestmark = pytest.mark.slow

NUMBERS = TensorDataset(torch.arange(20.0), torch.arange(20))

forked = partial(Prefetcher, sharing_mode=SharingMode.FORK)


def prefetch_and_return(connection):
    try:
        prefetcher = forked([torch.ones(1)] * 4)
        next(prefetcher)
        connection.send(prefetcher._process.pid)
        signal.signal(signal.SIGTERM, lambda *_: prefetcher.terminate())  # keeps it alive beyond this function
    except FetchStartError as error:
        connection.send(str(error))


def in_a_child(**arguments):
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=prefetch_and_return, args=(there,), **arguments)
    child.start()
    answer = here.recv()
    child.join(30)
    assert child.exitcode == 0
    return answer


@pytest.mark.usefixtures("nothing_left_behind")
def test_terminating_ends_the_process_and_says_so_afterwards(ends):
    prefetcher = forked([torch.ones(1)] * 4)
    process = prefetcher._process.pid
    next(prefetcher)
    prefetcher.terminate()
    prefetcher.terminate()
    assert ends(process)
    with pytest.raises(FetchError, match="terminated"):
        next(prefetcher)
    with pytest.raises(FetchError, match="terminated"):
        iter(prefetcher)
    del prefetcher
    gc.collect()


@pytest.mark.usefixtures("nothing_left_behind")
def test_a_deleted_prefetcher_ends_its_process(ends):
    prefetcher = forked([torch.ones(1)] * 4)
    process = prefetcher._process.pid
    del prefetcher
    assert ends(process)


@pytest.mark.usefixtures("nothing_left_behind")
def test_many_prefetchers_leave_nothing_behind():
    for _ in range(15):
        prefetcher = forked(Loader(NUMBERS, batch_size=2))
        assert int(next(prefetcher)[1][0]) == 0
    del prefetcher
    gc.collect()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("persistent", [True, False])
def test_the_workers_of_a_loader_shut_down_by_themselves(tmp_path, persistent):
    """Workers that are killed in the middle of a batch would leave shared memory behind."""

    def write_when_it_ends(worker):
        multiprocessing.util.Finalize(None, (tmp_path / str(worker)).touch, exitpriority=1)

    loader = Loader(
        NUMBERS,
        batch_size=2,
        num_workers=2,
        persistent_workers=persistent,
        prefetch_factor=4,
        worker_init_fn=write_when_it_ends,
    )
    prefetcher = forked(loader)
    next(prefetcher)
    prefetcher.terminate()
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1"}


def test_an_unresponsive_reader_is_killed(ends):
    class Stuck:
        def __iter__(self):
            yield torch.tensor([0])
            signal.pause()

    prefetcher = forked(Stuck())
    process = prefetcher._process.pid
    assert len([next(prefetcher)]) == 1
    prefetcher.terminate()
    assert ends(process)


def test_a_child_process_ends_its_own_prefetcher(ends):
    assert ends(in_a_child())


def test_a_daemon_gets_an_error_because_it_cannot_have_children():
    assert "daemonic processes are not allowed to have children" in in_a_child(daemon=True)
