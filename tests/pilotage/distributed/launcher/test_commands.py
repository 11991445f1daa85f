from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from pilotage.distributed.launcher import guard
from pilotage.distributed.launcher.commands import command_line, guard_request
from pilotage.distributed.launcher.job import Job
from pilotage.distributed.launcher.remote import RemoteShell


def job(host: str, **options) -> Job:
    return Job(command=("python3", "a file.py", "--x='y'"), hosts=(host,), **options)


def process_of(made: Job):
    (process,) = made.processes("10.0.0.1", 4000)
    return process


def test_on_this_machine_the_guard_is_started_directly():
    made = job("localhost", environment={"A": "1"})
    request = json.loads(guard_request(made, process_of(made), 2))
    assert command_line(made, process_of(made)) == [sys.executable, "-I", "-S", guard.__file__]
    assert request["command"] == list(made.command)
    expected = {
        "A": "1",
        "POPDIST_NUM_TOTAL_REPLICAS": "1",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "4000",
        "PILOTAGE_RESTART": "2",
    }
    assert expected.items() <= request["environment"].items()


def test_another_host_is_reached_by_ssh_with_what_belongs_to_the_job_and_nothing_else():
    made = job("far", exported=("WANTED",))
    here = {"PATH": "/bin", "WANTED": "w", "SECRET": "s", "PILOTAGE_TIER": "graph"}
    *shell, host, line = command_line(made, process_of(made), here)
    assert shell == ["ssh", "-o", "BatchMode=yes"]
    assert host == "far"
    assert shlex.split(line)[1:4] == ["-I", "-S", "-c"]
    request = json.loads(guard_request(made, process_of(made), 0, here))
    assert request["command"] == list(made.command)
    assert here.items() - {("SECRET", "s")} <= request["environment"].items()
    assert "SECRET" not in request["environment"]


def test_the_jobs_own_remote_shell_is_used():
    made = job("far", remote_shell=RemoteShell.MPIRUN, mpirun_arguments=("--mca", "oob_tcp_if_include", "eth1"))
    words = command_line(made, process_of(made), {})
    assert words[0] == "mpirun"
    assert "oob_tcp_if_include" in words
    assert words[-2:] == ["-c", Path(guard.__file__).read_text()]


@pytest.mark.parametrize("shell", [None, *RemoteShell])
@pytest.mark.parametrize("host", ["localhost", "far"])
def test_command_lines_reveal_nothing_about_the_job(host, shell):
    made = job(host, remote_shell=shell, environment={"API_KEY": "hidden-1"}, exported=("TOKEN",))
    (process,) = made.processes("10.0.0.1", 4321, "/tmp/pilotage-job-hidden-4")
    here = {"PATH": "/bin", "TOKEN": "hidden-2", "PILOTAGE_SECRET": "hidden-3"}
    line = " ".join(command_line(made, process, here))
    for text in ("hidden", "4321", "10.0.0.1", "API_KEY", "TOKEN", "a file.py"):
        assert text not in line
    request = json.loads(guard_request(made, process, 0, here))
    assert request["environment"]["API_KEY"] == "hidden-1"
    assert request["environment"]["PILOTAGE_JOB_DIRECTORY"] == "/tmp/pilotage-job-hidden-4"
    assert (request["environment"].get("TOKEN") == "hidden-2") == (host == "far")
