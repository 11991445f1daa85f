import csv
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.cli.monitor import COMMAND
from pilotage.cli.monitor.records import COLUMNS
from pilotage.cli.monitor.watching import run

ANNOUNCED = """
from pilotage.events import BackendChosen, StepsRun
from pilotage.monitoring.announcement import ProgramDescription
from pilotage.monitoring.announcer import Announcer
announcer = Announcer(ProgramDescription(), lambda device: "")
announcer.note(StepsRun(device="cpu", tier="graph", micro_batches=10, updates=10, seconds=0.05))
print(flush=True)
input()
"""
MONITOR = [sys.executable, "-m", "pilotage", "monitor"]


@pytest.fixture
def run_directory(tmp_path, monkeypatch) -> Path:
    """The run directory of the processes that the test starts."""
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "run"


@pytest.fixture
def start():
    """Start a process that does not outlive the test."""
    started = []

    def start(*command: str, **streams: object) -> subprocess.Popen:
        started.append(subprocess.Popen(command, **streams))
        return started[-1]

    yield start
    for child in started:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def announced(run_directory, start):
    """A process that has announced a program."""
    child = start(sys.executable, "-c", ANNOUNCED, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


def parsed(*words: str):
    parser = __import__("argparse").ArgumentParser()
    COMMAND.add_arguments(parser)
    return parser.parse_args(words)


def test_a_process_is_shown_until_it_is_killed(announced, run_directory, capsys):
    assert run(parsed()) == 0
    assert str(announced.pid) in capsys.readouterr().out
    announced.kill()
    announced.wait()
    assert run(parsed()) == 0
    assert "No attached processes on " in capsys.readouterr().out
    assert not list(run_directory.iterdir())


def test_json_and_values_name_the_same_process(announced, capsys):
    run(parsed("--json"))
    (process,) = json.loads(capsys.readouterr().out)["processes"]
    assert process["pid"] == announced.pid
    assert process["programs"][0]["steps"] == 10
    run(parsed("--csv-output"))
    header, line = csv.reader(capsys.readouterr().out.splitlines())
    assert header == list(COLUMNS)
    assert line[COLUMNS.index("pid")] == str(announced.pid)


def test_missing_files_cause_no_error(run_directory, capsys):
    for words in ([], ["--json"], ["--csv-output"], ["-s"], ["--no-card-info"], ["--csv-output", "--no-headers"]):
        assert run(parsed(*words)) == 0
    assert not run_directory.exists()
    assert "Traceback" not in capsys.readouterr().err


def test_the_monitor_starts_without_torch(run_directory):
    program = "import sys; sys.modules['torch'] = None; sys.argv = ['pilotage', 'monitor', '--json']; "
    program += "import runpy; runpy.run_module('pilotage', run_name='__main__')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert json.loads(ran.stdout)["devices"][0]["id"] == "cpu", ran.stderr


@pytest.mark.slow
def test_watching_shows_new_processes_and_drops_killed_ones(announced, start):
    watching = start(*MONITOR, "--json", "--watch", "0.1", stdout=subprocess.PIPE, text=True)
    looks = (json.loads(line)["processes"] for line in watching.stdout)
    assert [process["pid"] for process in next(looks)] == [announced.pid]
    announced.kill()
    assert next(look for look in looks if not look) == []
    watching.send_signal(signal.SIGINT)
    assert watching.wait() == 0


@pytest.mark.slow
def test_csv_has_one_header_while_watching(announced, start):
    watching = start(*MONITOR, "--csv-output", "--watch", "0.1", stdout=subprocess.PIPE, text=True)
    lines = [watching.stdout.readline() for _ in range(3)]
    assert [line.startswith("device,") for line in lines] == [True, False, False]


@pytest.mark.slow
def test_the_reader_may_close_the_pipe(announced, start):
    watching = start(*MONITOR, "--watch", "0.1", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watching.stdout.readline()
    watching.stdout.close()
    assert watching.wait() == 0
    assert watching.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_is_refreshed_in_place(announced, start, has_rich, monkeypatch):
    program = "import sys; sys.argv = ['pilotage', 'monitor', '--watch', '0.1']; "
    program += "import importlib.util as u; found = u.find_spec; "
    program += f"u.find_spec = lambda name, *rest: found(name, *rest) if name != 'rich' or {has_rich} else None; "
    program += "import runpy; runpy.run_module('pilotage', run_name='__main__')"
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = pty.openpty()
    watching = start(sys.executable, "-c", program, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    seen = b""
    while seen.count(b"until Ctrl-C") < 3:
        seen += os.read(ours, 1 << 16)
    assert str(announced.pid).encode() in seen
    assert b"\x1b[H" in seen
    assert ("┼".encode() in seen) is has_rich
    watching.send_signal(signal.SIGINT)
    assert watching.wait() == 0
    os.close(ours)
