import contextlib
import gc
import multiprocessing
import multiprocessing.util
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from pilotage.data import Loader, Prefetcher, Sharing
from pilotage.errors import FetchError, FetchStartError, OptionError
from pilotage.options.batching import Batching

pytestmark = pytest.mark.slow

NUMBERS = TensorDataset(torch.arange(20.0), torch.arange(20))


def forked(iterable, **arguments):
    return Prefetcher(iterable, sharing=Sharing.FORK, **arguments)


def numbers_of(batches):
    return [int(number) for _, numbers in batches for number in numbers]


class Announcing:
    """Yields numbers, and says through a pipe when each of them is read."""

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


@pytest.mark.parametrize(
    "sharing",
    [
        Sharing.FORK,
        Sharing.FORK_SERVER,
        pytest.param(Sharing.SHARED_MEMORY, marks=pytest.mark.slow),
        pytest.param(Sharing.FILE_SYSTEM, marks=pytest.mark.slow),
    ],
)
def test_every_way_of_sharing_delivers_the_same_epoch_after_epoch(sharing):
    loader = Loader(NUMBERS, Batching(device_iterations=2), batch_size=3)
    prefetcher = Prefetcher(loader, sharing=sharing)
    for _ in range(3):
        assert numbers_of(prefetcher) == numbers_of(loader)
    prefetcher.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("sharing", [Sharing.FORK_SERVER, Sharing.FILE_SYSTEM, Sharing.SHARED_MEMORY])
def test_a_dataset_of_very_many_tensors_is_delivered(sharing):
    samples = [torch.tensor([number]) for number in range(300)]
    prefetcher = Prefetcher(samples, sharing=sharing)
    assert [int(number) for number in prefetcher] == list(range(300))
    prefetcher.terminate()


@pytest.mark.usefixtures("nothing_left_behind")
def test_items_are_views_valid_until_the_next_one():
    # Read ahead into the next epoch, the ring would soon hold other items than the last.
    items = [torch.full((3,), float(number)) for number in range(9)]
    prefetcher = forked(items, buffer_size=2, load_indefinitely=False)
    kept, copies = [], []
    for item in prefetcher:
        copies.append(item.clone())
        kept.append(item)
    assert [int(copy[0]) for copy in copies] == list(range(9))
    assert len({item.data_ptr() for item in kept}) == 2
    prefetcher.terminate()
    assert kept[-1].tolist() == [8.0] * 3
    del kept, item, prefetcher
    gc.collect()


@pytest.mark.parametrize("buffer_size", [1, 2, 7])
def test_any_size_of_the_ring_delivers_everything(buffer_size):
    prefetcher = forked(Loader(NUMBERS, batch_size=3, drop_last=False), buffer_size=buffer_size)
    assert numbers_of(prefetcher) == list(range(20))
    assert [len(numbers) for _, numbers in prefetcher][-1] == 2
    prefetcher.terminate()


def test_items_keep_their_kind():
    a, b = torch.rand(2, 3), torch.arange(2)
    for item, arrives_as in (
        (a, a),
        ((a, b), [a, b]),
        ({"z": a, "a": b}, {"z": a, "a": b}),
        (torch.tensor(7), torch.tensor(7)),
        ([torch.rand(2, requires_grad=True), a.t()], None),
    ):
        prefetcher = forked([item, item])
        for arrived in prefetcher:
            torch.testing.assert_close(arrived, list(item) if arrives_as is None else arrives_as, rtol=0, atol=0)
        assert not isinstance(arrived, dict) or list(arrived) == list(item)
        prefetcher.terminate()


def test_an_epoch_can_be_started_anew_in_the_middle():
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


def test_an_exhausted_epoch_stays_exhausted_until_it_is_started_anew():
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


def test_only_the_first_item_is_read_before_anyone_iterates():
    source = Announcing(5)
    prefetcher = forked(source)
    assert source.heard.recv() == 0
    assert not source.heard.poll(0.3)
    assert len(list(prefetcher)) == 5
    prefetcher.terminate()


def test_an_early_preload_fills_the_ring_before_anyone_iterates():
    source = Announcing(5)
    prefetcher = forked(source, early_preload=True, buffer_size=3)
    # Three fill the ring, and a fourth waits in the hand of the reader.
    assert [source.heard.recv() for _ in range(4)] == [0, 1, 2, 3]
    assert not source.heard.poll(0.3)
    prefetcher.terminate()


@pytest.mark.parametrize("load_indefinitely", [True, False])
def test_the_next_epoch_is_read_ahead_only_where_that_is_wanted(load_indefinitely):
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


def test_a_miss_is_slept_over_before_waiting(monkeypatch):
    naps = []
    monkeypatch.setattr("pilotage.data.asynchronous.time.sleep", naps.append)
    prefetcher = forked(Breaking(1, lambda: None), miss_sleep_seconds=0.25)
    list(prefetcher)
    assert set(naps) == {0.25}
    prefetcher.terminate()


@pytest.mark.parametrize("sharing", [Sharing.FORK, Sharing.FORK_SERVER])
def test_shuffling_draws_there_what_it_would_have_drawn_here(sharing):
    torch.manual_seed(11)
    loader = Loader(NUMBERS, batch_size=4, shuffle=True)
    prefetcher = Prefetcher(loader, sharing=sharing)
    ahead = [numbers_of(prefetcher) for _ in range(2)]
    assert ahead == [numbers_of(loader) for _ in range(2)]
    assert ahead[0] != ahead[1]
    prefetcher.terminate()


def test_the_random_stream_of_this_process_is_left_alone():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    forked(Loader(NUMBERS, shuffle=True)).terminate()
    assert torch.equal(torch.rand(2), expected)


def test_a_loader_with_workers_of_its_own_can_be_read_ahead(ends):
    class WhoReads(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return torch.tensor([index, os.getpid()])

    prefetcher = forked(Loader(WhoReads(), batch_size=2, num_workers=1))
    readers = {int(reader) for batch in prefetcher for reader in batch[:, 1]}
    assert len(readers) == 1
    prefetcher.terminate()
    assert all(ends(reader) for reader in readers)


@pytest.mark.parametrize("drop_last", [True, False])
def test_items_are_rebatched_in_the_other_process(drop_last):
    loader = Loader(NUMBERS, Batching(device_iterations=3), batch_size=2, piece_size=4)
    prefetcher = forked(loader, rebatched_size=6, drop_last=drop_last)
    assert [len(numbers) for _, numbers in prefetcher] == [6, 6, 6] + [2] * (not drop_last)
    assert numbers_of(prefetcher) == list(range(18 if drop_last else 20))
    assert len(prefetcher) == (3 if drop_last else 4)
    prefetcher.terminate()


def test_the_length_is_that_of_what_is_read():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(7))

        def __len__(self):
            return 7

    assert_length(forked([torch.ones(2)] * 5), 5)
    assert_length(forked([torch.ones(2)] * 5, rebatched_size=4), 2)
    assert_length(forked(DataLoader(NUMBERS, batch_size=3), rebatched_size=8), 2)
    assert_length(forked(DataLoader(NUMBERS, batch_size=3, drop_last=True), rebatched_size=9), 2)
    assert_length(forked(DataLoader(Stream(), batch_size=2), rebatched_size=3), 2)


def assert_length(prefetcher, length):
    assert len(prefetcher) == length
    assert len(list(prefetcher)) == length
    prefetcher.terminate()


def test_an_iterable_without_a_length_has_none_here_either():
    prefetcher = forked(Breaking(2, lambda: None))
    with pytest.raises(TypeError, match="has no len"):
        len(prefetcher)
    prefetcher.terminate()


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
    slots = (1 << 50) if message == "does not fit" else 3
    with pytest.raises(FetchStartError, match=message):
        forked(iterable, buffer_size=slots)
    gc.collect()
    assert not multiprocessing.active_children()


def test_a_failure_comes_after_everything_that_was_read_before_it():
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
        (torch.ones(2, dtype=torch.int64), "torch.int64"),
        ([torch.ones(2)], "Items have to be alike"),
        ("text", "not str"),
    ],
    ids=["longer", "other type", "other kind", "no tensor"],
)
def test_an_item_unlike_the_first_is_refused(later, message):
    prefetcher = forked([torch.ones(2), later])
    with pytest.raises(FetchError, match=message):
        list(prefetcher)


def test_what_cannot_be_pickled_is_refused_with_the_remedy():
    with pytest.raises(FetchStartError, match=r"picklable.*Sharing\.FORK"):
        Prefetcher([lambda: None], sharing=Sharing.FORK_SERVER)


def test_too_many_tensors_to_share_are_refused_with_the_remedy():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    samples = [torch.ones(1) for _ in range(200)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 50, hard))
    try:
        with pytest.raises(FetchStartError, match="another way of sharing"):
            Prefetcher(samples, sharing=Sharing.SHARED_MEMORY)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "arguments",
    [{"buffer_size": 0}, {"miss_sleep_seconds": -1.0}, {"rebatched_size": 0}],
    ids=lambda each: next(iter(each)),
)
def test_settings_that_cannot_be_are_refused(arguments):
    with pytest.raises(OptionError, match=next(iter(arguments))):
        forked([torch.ones(1)], **arguments)


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
def test_a_prefetcher_that_is_forgotten_takes_its_process_along(ends):
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
def test_workers_of_a_loader_come_to_an_end_by_themselves(tmp_path, persistent):
    """Killed in the middle of a batch they would leave shared memory behind, and whatever else they had open."""

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


def test_a_reader_that_does_not_listen_is_ended_all_the_same(ends):
    prefetcher = forked(Breaking(1, signal.pause))
    process = prefetcher._process.pid
    assert len([next(prefetcher)]) == 1
    prefetcher.terminate()
    assert ends(process)


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


def test_a_child_process_ends_with_what_it_reads_ahead(ends):
    assert ends(in_a_child())


def test_a_daemon_is_told_that_it_may_have_no_children():
    assert "daemonic processes are not allowed to have children" in in_a_child(daemon=True)


SCRIPT = """
import os, signal, sys
import torch
from torch.utils.data import TensorDataset
from pilotage.data import Loader, Prefetcher, Sharing

class Stuck:
    def __iter__(self):
        yield torch.tensor([os.getpid()])
        signal.pause()

class Whose(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.tensor([os.getpid()])

if __name__ == "__main__":
    sources = {
        "reading": TensorDataset(torch.zeros(1000)),
        "stuck": Stuck(),
        "workers": Loader(Whose(), batch_size=2, num_workers=1),
    }
    source = sources[sys.argv[2]]
    prefetcher = Prefetcher(source, sharing=Sharing[sys.argv[1]])
    item = next(prefetcher)
    others = {prefetcher._process.pid} | (set() if sys.argv[2] == "reading" else {int(item.flatten()[0])})
    maps = [line for who in (os.getpid(), *others) for line in open(f"/proc/{who}/maps")]
    assert any("memfd:pilotage-ring" in line for line in maps) or sys.argv[1] == "FILE_SYSTEM"
    named = [line for line in maps if "/dev/shm/" in line and "(deleted)" not in line]
    assert not named, f"shared memory with a name may outlive its users: {named}"
    print(*others, flush=True)
    if sys.argv[3] == "wait":
        signal.pause()
    elif sys.argv[3] == "fail":
        raise SystemError("an error of the user's")
    elif sys.argv[3] == "leave":
        os._exit(0)
"""


class Run:
    """The script above, running; ``others`` are the processes that it started."""

    def __init__(self, folder: Path, sharing: Sharing, source: str, then: str) -> None:
        script = folder / "script.py"
        script.write_text(SCRIPT)
        self.main = subprocess.Popen(
            [sys.executable, str(script), sharing.name, source, then],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.others = [int(word) for word in self.main.stdout.readline().split()]

    def finish(self, ends: Callable[[int], bool]) -> tuple[int, str]:
        """Wait for the end of all; the exit code and what was said on standard error."""
        assert all(ends(process) for process in self.others)
        _, errors = self.main.communicate(timeout=200)
        assert all(ends(process) for process in self._session())
        return self.main.returncode, errors

    def _session(self) -> list[int]:
        """Whoever is left of all that the script started, multiprocessing's own servers too."""
        alive = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and os.getsid(int(entry.name)) == self.main.pid:
                    alive.append(int(entry.name))
        return alive


ALL_SHARINGS = [
    Sharing.FORK,
    *(pytest.param(sharing, marks=pytest.mark.long) for sharing in Sharing if sharing is not Sharing.FORK),
]
ALL_SOURCES = [
    "stuck",
    *(pytest.param(source, marks=pytest.mark.long) for source in ("reading", "workers")),
]


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ALL_SHARINGS, ids=str)
@pytest.mark.parametrize("source", ALL_SOURCES)
def test_a_killed_program_leaves_no_process_behind(tmp_path, ends, sharing, source):
    run = Run(tmp_path, sharing, source, "wait")
    assert run.others
    run.main.kill()
    assert run.finish(ends)[0] == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ALL_SHARINGS, ids=str)
@pytest.mark.parametrize("source", ALL_SOURCES)
@pytest.mark.parametrize("everyone", [True, pytest.param(False, marks=pytest.mark.long)], ids=["group", "program"])
def test_an_interrupted_program_ends_quietly_with_all_its_processes(tmp_path, ends, sharing, source, everyone):
    run = Run(tmp_path, sharing, source, "wait")
    if everyone:
        os.killpg(run.main.pid, signal.SIGINT)
    else:
        run.main.send_signal(signal.SIGINT)
    code, errors = run.finish(ends)
    assert code == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ALL_SHARINGS, ids=str)
@pytest.mark.parametrize(
    ("then", "code"),
    [("fail", 1), pytest.param("return", 0, marks=pytest.mark.long), pytest.param("leave", 0, marks=pytest.mark.long)],
)
def test_a_program_that_ends_without_terminating_leaves_no_process_behind(tmp_path, ends, sharing, then, code):
    run = Run(tmp_path, sharing, "reading", then)
    found, errors = run.finish(ends)
    assert found == code
    assert ("SystemError" in errors) == (then == "fail")
    assert "resource_tracker" not in errors


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import torch\nfrom pilotage.data import Prefetcher\nPrefetcher([torch.ones(1)])\nprint('unreachable')"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 1
    assert "if __name__ == '__main__'" in ran.stderr
    assert "unreachable" not in ran.stdout
