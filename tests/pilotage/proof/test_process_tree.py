import os
import signal
import subprocess
import sys

import pytest

from pilotage.proof.process_tree import EndedBySignal, ProcessTree, ended_by_signals, processes_with

STUBBORN = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = os.fork()\n"
    "if child == 0:\n"
    "    os.setsid()\n"
    "os.write(1, b'%d\\n' % os.getpid())\n"  # in one piece, since both processes write
    "time.sleep(60)\n"
)


@pytest.fixture
def stubborn(tmp_path):
    mark = str(tmp_path / "mark")
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        env={**os.environ, "PROOF_TEST": mark},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    numbers = {int(process.stdout.readline()) for _ in range(2)}
    yield mark, numbers
    process.kill()
    process.wait()
    process.stdout.close()


def test_processes_are_found_by_their_mark_in_any_session(stubborn):
    mark, numbers = stubborn
    assert processes_with(mark) == numbers


def test_processes_that_ignore_a_polite_signal_are_killed(stubborn, ends):
    mark, numbers = stubborn
    assert ProcessTree(mark).end(grace=0.2) == 2
    assert processes_with(mark) == set()
    assert all(ends(number) for number in numbers - {min(numbers)})


def test_nothing_with_the_mark_is_nothing_to_end(tmp_path):
    with ProcessTree(str(tmp_path / "nobody")) as tree:
        assert tree.end() == 0


DAEMON = (
    "import os, subprocess\n"
    "clean = dict(PATH=os.environ['PATH'])\n"
    "for session in (False, True):\n"
    "    sleeping = subprocess.Popen(['sleep', '60'], env=clean, stdout=2, start_new_session=session)\n"
    "    print(sleeping.pid, flush=True)\n"
    "os._exit(0)\n"
)
"""Leaves a process in its session and one in another, neither with its environment."""


def numbers_from(script):
    """What a script prints; it has ended then."""
    command = [sys.executable, "-c", script]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "start_new_session": True}
    ran = subprocess.run(command, check=True, **options)
    return {int(each) for each in ran.stdout.split()}


def test_processes_with_another_environment_are_found_without_their_parent(tmp_path, ends):
    with ProcessTree(str(tmp_path / "mark")) as tree:
        numbers = numbers_from(DAEMON)
        assert tree.living() == numbers
        assert tree.end(grace=5.0) == 2
    assert all(ends(number) for number in numbers)


def test_processes_that_others_started_keep_running(tmp_path):
    earlier = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with earlier, ProcessTree(str(tmp_path / "mark")) as tree:
        with subprocess.Popen(["sleep", "60"]) as ours:
            assert tree.end() == 0
            assert (earlier.poll(), ours.poll()) == (None, None)
            ours.kill()
        earlier.kill()


def test_afterwards_orphans_get_their_usual_parent_again(tmp_path):
    def parent_of_an_orphan():
        (number,) = numbers_from("import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=2).pid)")
        with open(f"/proc/{number}/stat") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        os.kill(number, signal.SIGKILL)
        return parent

    before = parent_of_an_orphan()
    with ProcessTree(str(tmp_path / "mark")):
        assert parent_of_an_orphan() == os.getpid()
    assert parent_of_an_orphan() == before


@pytest.fixture
def default_handlers():
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_time_to_clean_up(default_handlers, number, status):
    cleaned = []

    @ended_by_signals()
    def work():
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(signal.SIGTERM)
            cleaned.append(True)

    with pytest.raises(EndedBySignal) as caught:
        work()
    assert (caught.value.status, caught.value.code, caught.value.name) == (status, status, number.name)
    assert cleaned
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_signal_that_python_drops_is_raised_at_the_next_look(default_handlers):
    class Freed:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    dropped = []
    before, sys.unraisablehook = sys.unraisablehook, lambda found: dropped.append(found.exc_type)
    try:
        with ended_by_signals() as signals:
            signals.check()
            Freed()
            assert dropped == [EndedBySignal]
            with pytest.raises(EndedBySignal, match="143"):
                signals.check()
    finally:
        sys.unraisablehook = before


def test_a_signal_that_is_ignored_stays_ignored(default_handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ended_by_signals():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
