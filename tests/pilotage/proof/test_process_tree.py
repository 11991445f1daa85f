import os
import subprocess
import sys

import pytest

from pilotage.proof.process_tree import end_all, processes_with

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
    assert end_all(mark, grace=0.2) == 2
    assert processes_with(mark) == set()
    assert all(ends(number) for number in numbers - {min(numbers)})


def test_nothing_with_the_mark_is_nothing_to_end(tmp_path):
    assert end_all(str(tmp_path / "nobody")) == 0
