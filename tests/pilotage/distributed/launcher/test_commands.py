from __future__ import annotations

import json
import shlex
import sys

from pilotage.distributed.launcher.commands import command_line
from pilotage.distributed.launcher.job import Job
from pilotage.distributed.launcher.remote import RemoteShell


def job(host: str, **options) -> Job:
    return Job(command=("python3", "a file.py", "--x='y'"), hosts=(host,), **options)


def place_of(made: Job):
    (place,) = made.places("10.0.0.1", 4000)
    return place


def test_on_this_machine_the_guard_is_started_directly():
    made = job("localhost", environment={"A": "1"})
    python, *_, text = command_line(made, place_of(made), 2)
    told = json.loads(text)
    assert python == sys.executable
    assert told["command"] == list(made.command)
    expected = {
        "A": "1",
        "POPDIST_NUM_TOTAL_REPLICAS": "1",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "4000",
        "PILOTAGE_RESTART": "2",
    }
    assert expected.items() <= told["environment"].items()


def test_another_host_is_reached_by_ssh_with_what_belongs_to_the_job_and_nothing_else():
    made = job("far", exported=("WANTED",))
    here = {"PATH": "/bin", "WANTED": "w", "SECRET": "s", "PILOTAGE_TIER": "graph"}
    *shell, host, line = command_line(made, place_of(made), 0, here)
    assert shell == ["ssh", "-o", "BatchMode=yes"]
    assert host == "far"
    told = json.loads(shlex.split(line)[-1])
    assert told["command"] == list(made.command)
    assert here.items() - {("SECRET", "s")} <= told["environment"].items()
    assert "SECRET" not in told["environment"]


def test_the_jobs_own_remote_shell_is_used():
    made = job("far", remote_shell=RemoteShell.MPIRUN, mpirun_arguments=("--mca", "oob_tcp_if_include", "eth1"))
    words = command_line(made, place_of(made), 0, {})
    assert words[0] == "mpirun"
    assert "oob_tcp_if_include" in words
    assert json.loads(words[-1])["command"] == list(made.command)
