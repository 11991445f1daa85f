"""Processes of a job that really run: their ends, their output, and signals on the way to them."""

from __future__ import annotations

import fcntl
import io
import signal
import sys
import threading
from pathlib import Path

import pytest

from pilotage.distributed.launcher.output import TaggedOutput
from pilotage.distributed.launcher.running_job import ProcessExit, ProcessStart, RunningJob
from pilotage.errors import OptionError

UNTIL_CLOSED = "import sys; first = sys.stdin.readline(); print(first.strip(), flush=True); sys.stdin.read(); "
"""What a guard does: it reads its first line, and ends when its standard input is closed."""


def python(program, first_line=b"begin\n"):
    return ProcessStart([sys.executable, "-c", program], first_line)


class Output:
    """What processes print, in memory."""

    def __init__(self, count):
        self.stdout, self.stderr = io.BytesIO(), io.BytesIO()
        self.tagged = TaggedOutput(self.stdout, self.stderr, list(range(count)))

    def lines(self):
        return sorted(self.stdout.getvalue().decode().splitlines())


def started(*programs):
    output = Output(len(programs))
    return RunningJob([python(program) for program in programs], output.tagged), output


def test_each_process_gets_its_first_line_and_all_succeed():
    echo = "import sys; print(sys.stdin.readline().strip())"
    output = Output(2)
    job = RunningJob([python(echo, b"one\n"), python(echo, b"two\n")], output.tagged)
    assert job.wait() == []
    assert output.lines() == ["[1,0]<stdout>:one", "[1,1]<stdout>:two"]


def test_the_first_failure_stops_the_others():
    job, output = started(UNTIL_CLOSED, "raise SystemExit(3)", UNTIL_CLOSED)
    assert job.wait() == [ProcessExit(1, 3)]
    assert output.lines() == ["[1,0]<stdout>:begin", "[1,2]<stdout>:begin"]


def test_others_that_fail_by_themselves_are_named_too():
    job, _ = started("raise SystemExit(3)", UNTIL_CLOSED + "raise SystemExit(5)")
    assert sorted(job.wait(), key=lambda ending: ending.process) == [ProcessExit(0, 3), ProcessExit(1, 5)]


def test_a_process_that_was_stopped_is_not_a_failure():
    terminated = UNTIL_CLOSED + "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    job, _ = started("raise SystemExit(3)", terminated)
    assert job.wait() == [ProcessExit(0, 3)]


def test_a_signal_that_ends_a_process_is_in_its_status():
    job, _ = started("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert job.wait() == [ProcessExit(0, 128 + signal.SIGSEGV)]


SHOWS_INTERRUPTS = (
    "import signal, sys, time\n"
    "def show(number, frame):\n"
    "    print('signal', number, flush=True)\n"
    "signal.signal(signal.SIGINT, show)\n"
    "print('ready', flush=True)\n"
    "sys.stdin.read()\n"
)


class Waiting(io.BytesIO):
    """An output that tells when a text was printed."""

    def __init__(self, text, count):
        super().__init__()
        self._text, self._left, self.happened = text, count, threading.Event()

    def write(self, data):
        if self._text in data:
            self._left -= 1
            if not self._left:
                self.happened.set()
        return super().write(data)


def test_a_signal_is_forwarded_and_a_second_one_stops_the_processes():
    ready = Waiting(b"ready", 2)
    output = TaggedOutput(ready, io.BytesIO(), [0, 1])
    before = signal.getsignal(signal.SIGINT)
    job = RunningJob([python(SHOWS_INTERRUPTS), python(SHOWS_INTERRUPTS)], output)
    assert ready.happened.wait(60)
    with job.forwarding_signals():
        signal.raise_signal(signal.SIGINT)
        assert job.interrupted == signal.SIGINT
        signal.raise_signal(signal.SIGINT)
        assert job.wait() == []
    assert signal.getsignal(signal.SIGINT) is before
    printed = ready.getvalue().decode()
    assert printed.count(f"signal {int(signal.SIGINT)}") == 2


def test_a_terminal_reaches_the_processes_through_the_launcher_only():
    job, output = started("import os; print(os.getpgid(0) == os.getpid())")
    assert job.wait() == []
    assert output.lines() == ["[1,0]<stdout>:True"]


def test_a_long_first_line_does_not_wait_for_its_reader():
    line = b"x" * 300_000 + b"\n"
    output = Output(1)
    job = RunningJob([python("import sys; print(len(sys.stdin.readline()))", line)], output.tagged)
    assert job.wait() == []
    assert output.lines() == ["[1,0]<stdout>:300001"]


def is_running(program):
    """Whether a child of this process runs a program."""
    children = (path.read_bytes() for path in Path("/proc/self/task").glob("*/children"))
    commands = (Path(f"/proc/{child}/cmdline") for ids in children for child in ids.decode().split())
    return any(program.encode() in command.read_bytes() for command in commands if command.exists())


def test_a_command_that_is_missing_stops_what_was_started():
    with pytest.raises(FileNotFoundError, match="/no/such/command"):
        RunningJob([python(UNTIL_CLOSED), ProcessStart(["/no/such/command"], b"\n")], Output(2).tagged)
    assert not is_running(UNTIL_CLOSED)


def test_a_first_line_that_no_pipe_holds_is_refused_and_nothing_is_left_running(monkeypatch):
    allowed = fcntl.fcntl

    def limited(pipe, command, *size):
        # As for users without privileges, of whom the tests may not be one.
        if command == fcntl.F_SETPIPE_SZ:
            raise PermissionError
        return allowed(pipe, command, *size)

    monkeypatch.setattr(fcntl, "fcntl", limited)
    starts = [python(UNTIL_CLOSED), python(UNTIL_CLOSED, b"x" * 2_000_000)]
    with pytest.raises(OptionError, match=r"take 2000000 bytes.*Nothing was started"):
        RunningJob(starts, Output(2).tagged)
    assert not is_running(UNTIL_CLOSED)
