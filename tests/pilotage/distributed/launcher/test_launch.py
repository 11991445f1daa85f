from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SHELL = ("sh", "-c")
TELL_AND_WAIT = "echo $$; sleep 1000 & echo $!; wait"


def is_running(pid: int) -> bool:
    """Whether a process is running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pids, seconds=15.0):
    end = time.monotonic() + seconds
    while any(map(is_running, pids)):
        assert time.monotonic() < end, [pid for pid in pids if is_running(pid)]


def numbers_in(text):
    return [int(number) for number in re.findall(r"<stdout>:(\d+)$", text, re.MULTILINE)]


def read_numbers(process, count):
    return [int(process.stdout.readline().rpartition(":")[2]) for _ in range(count)]


def test_every_instance_gets_its_rank_and_its_lines_are_tagged(poprun):
    say = "echo out $POPDIST_REPLICA_INDEX_OFFSET of $POPDIST_NUM_TOTAL_REPLICAS; echo err >&2; printf end"
    status, out, err = poprun("--num-instances", 2, "--num-replicas=4", *SHELL, say)
    assert status == 0
    assert sorted(out.splitlines()) == [
        "[1,0]<stdout>:end",
        "[1,0]<stdout>:out 0 of 4",
        "[1,1]<stdout>:end",
        "[1,1]<stdout>:out 2 of 4",
    ]
    assert sorted(err.splitlines()) == ["[1,0]<stderr>:err", "[1,1]<stderr>:err"]


def test_each_verbose_flag_adds_details(poprun):
    quiet, loud, louder = (poprun(*words, "--num-instances=2", *SHELL, "exit")[2] for words in ((), ("-v",), ("-vv",)))
    assert not quiet
    assert "POPRUN [I] Instance 1 starts on localhost" in loud
    assert "POPDIST_" not in loud
    assert re.search(r"POPRUN \[D\] Instance 1 gets .*POPDIST_REPLICA_INDEX_OFFSET=1 ", louder)


def test_the_programs_arguments_are_passed_on_unchanged(poprun):
    _, out, _ = poprun(sys.executable, "-c", "import sys; print(sys.argv[1:])", "a b", "--host", "$HOME", "'")
    assert out == """[1,0]<stdout>:['a b', '--host', '$HOME', "'"]\n"""


def test_output_of_the_others_can_be_hidden(poprun):
    _, out, err = poprun("--num-instances=2", "--only-output-from-instance=1", *SHELL, "echo hello; echo no >&2")
    assert (out, err) == ("[1,1]<stdout>:hello\n", "[1,1]<stderr>:no\n")


def test_a_failing_instance_ends_the_job_with_its_status_and_last_lines(poprun):
    fail = f"if [ $POPDIST_LOCAL_INSTANCE_INDEX = 1 ]; then echo so long; exit 7; fi; {TELL_AND_WAIT}"
    status, out, err = poprun("--num-instances=2", *SHELL, fail)
    assert status == 7
    assert re.search(r"POPRUN \[E\] Instance 1 on localhost was the first to fail, with status 7", err)
    assert err.endswith("Its last lines:\n    so long\n")
    wait_until_gone(numbers_in(out))


def test_a_killed_instance_is_reported_with_its_signal(start_poprun):
    process = start_poprun("--num-instances=2", *SHELL, TELL_AND_WAIT)
    pids = read_numbers(process, 4)
    os.kill(pids[0], signal.SIGKILL)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGKILL
    assert "the first to fail, by signal SIGKILL" in err
    wait_until_gone(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_instances(start_poprun, number):
    catch = (
        "import signal, sys\n"
        "def end(number, _): print('caught', number, flush=True); sys.exit(3)\n"
        f"signal.signal({int(number)}, end)\nprint('ready', flush=True)\nsignal.pause()\n"
    )
    process = start_poprun("--num-instances=2", sys.executable, "-c", catch)
    assert {process.stdout.readline() for _ in range(2)} == {"[1,0]<stdout>:ready\n", "[1,1]<stdout>:ready\n"}
    process.send_signal(number)
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 128 + number
    assert f"caught {int(number)}" in out


def test_nothing_outlives_a_launcher_that_is_killed(start_poprun):
    process = start_poprun("--num-instances=2", *SHELL, TELL_AND_WAIT)
    pids = read_numbers(process, 4)
    process.kill()
    process.communicate()
    wait_until_gone(pids)


def test_children_of_an_instance_do_not_outlive_it(poprun):
    status, out, _ = poprun(*SHELL, "sleep 1000 >/dev/null 2>&1 & echo $!")
    assert status == 0
    wait_until_gone(numbers_in(out))


def test_a_job_is_restarted_as_often_as_requested(poprun, tmp_path):
    fail_twice = f"echo try $PILOTAGE_RESTART; echo x >> {tmp_path}/tries; test $PILOTAGE_RESTART = 2"
    status, out, err = poprun("--max-restarts=2", *SHELL, fail_twice)
    assert status == 0
    assert out.splitlines() == [f"[1,0]<stdout>:try {number}" for number in range(3)]
    assert err.count("Restarting the job (attempt ") == 2
    status, _, _ = poprun("--max-restarts=1", *SHELL, fail_twice)
    assert status == 1
    assert len(Path(tmp_path, "tries").read_text().splitlines()) == 5


def test_invalid_launches_give_one_line_and_start_nothing(poprun, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'started')!r}, 'w')")
    python = (sys.executable, script)
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        bad = [
            (["--num-instances=2", "--num-replicas=3", *python], {}, "3 replicas cannot be divided"),
            (["--num-instances=1", "--host", "a.invalid", *python], {}, "The host 'a.invalid' is not known"),
            (["--host", "a[", *python], {}, "host list 'a[' cannot be read"),
            (["--host-file", tmp_path / "no", *python], {}, "host file"),
            ([sys.executable, tmp_path / "no.py"], {}, "no.py' was not found"),
            (["no-such-program"], {}, "'no-such-program' was not found"),
            ([], {}, "No program to start"),
            (python, {"MASTER_PORT": port}, f"The port {port} is taken"),
            (["--mpi-local-args=--mca x y", *python], {}, "--mpi-local-args has '--mca'"),
        ]
        for words, environment, message in bad:
            status, out, err = poprun(*words, **environment)
            assert (status, out) == (2, ""), words
            assert message in err
            assert len(err.splitlines()) == 1, err
    assert not (tmp_path / "started").exists()


@pytest.fixture
def other_hosts(tmp_path):
    """A remote shell that emulates hosts on this machine, each with an empty environment."""
    shell = tmp_path / "remote-shell"
    shell.write_text(
        f'#!/bin/sh\necho "$1" >> {tmp_path}/reached\nexec env -i PATH=/usr/bin:/bin HERE="$1" sh -c "$2"\n'
    )
    shell.chmod(0o755)
    return {"PILOTAGE_REMOTE_SHELL": str(shell), "PILOTAGE_EXAMPLE": "it's here", "SECRET": "x", "MINE": "m"}


def test_other_hosts_are_reached_through_the_remote_shell(poprun, other_hosts, tmp_path):
    say = (
        "echo $HERE $POPDIST_REPLICA_INDEX_OFFSET $POPDIST_LOCAL_INSTANCE_INDEX $MASTER_ADDR "
        "$PILOTAGE_EXAMPLE ${SECRET-none} $MINE; pwd"
    )
    status, out, err = poprun(
        "--host=node[0-1]", "--num-instances=4", "--mpi-local-args=-x MINE", *SHELL, say, **other_hosts
    )
    assert status == 0, err
    lines = sorted(out.splitlines())
    assert [line for line in lines if "node" in line] == [
        f"[1,{rank}]<stdout>:node{rank // 2} {rank} {rank % 2} node0 it's here none m" for rank in range(4)
    ]
    assert lines.count(f"[1,0]<stdout>:{os.getcwd()}") == 1
    assert sorted((tmp_path / "reached").read_text().split()) == ["node0", "node0", "node1", "node1"]


def test_instances_on_other_hosts_end_with_the_launcher_and_with_each_other(poprun, start_poprun, other_hosts):
    process = start_poprun("--host=a,b", "--num-instances=2", *SHELL, TELL_AND_WAIT, **other_hosts)
    pids = read_numbers(process, 4)
    process.kill()
    process.communicate()
    wait_until_gone(pids)
    fail = f"if [ $HERE = b ]; then exit 9; fi; {TELL_AND_WAIT}"
    status, out, err = poprun("--host=a,b", "--num-instances=2", *SHELL, fail, **other_hosts)
    assert status == 9
    assert "Instance 1 on b was the first to fail" in err
    wait_until_gone(numbers_in(out))


def test_variables_for_other_hosts_are_not_on_the_command_line(poprun, other_hosts, tmp_path):
    shell = Path(other_hosts["PILOTAGE_REMOTE_SHELL"])
    shell.write_text(shell.read_text().replace("exec env", f'echo "$@" >> {tmp_path}/words\nexec env'))
    status, out, err = poprun(
        "--host=a,b", "--num-instances=2", "--mpi-local-args=-x API_KEY", *SHELL,
        "echo $API_KEY; tr '\\0' ' ' < /proc/$PPID/cmdline | head -c 100", **other_hosts, API_KEY="a-secret-of-mine",
    )  # fmt: skip
    assert status == 0, err
    assert out.count("a-secret-of-mine") == 2
    words = (tmp_path / "words").read_text()
    assert "a-secret-of-mine" not in words
    assert "MASTER_PORT" not in words


def test_variables_beyond_what_a_command_line_can_hold_arrive(poprun, other_hosts):
    status, out, err = poprun(
        "--host=a", "--mpi-local-args=-x A -x B -x C", sys.executable, "-c", "import os; print(len(os.environ['B']))",
        **other_hosts, A="a" * 100_000, B="b" * 100_000, C="c" * 100_000,
    )  # fmt: skip
    assert status == 0, err
    assert "100000" in out


@pytest.mark.parametrize("whom", ["launcher", "instance"])
def test_the_directory_of_a_job_is_removed_at_its_end(start_poprun, poprun, tmp_path, whom):
    def left():
        return [*tmp_path.glob("pilotage-job-*")]

    process = start_poprun("--num-instances=2", *SHELL, TELL_AND_WAIT, TMPDIR=str(tmp_path))
    pids = read_numbers(process, 4)
    (directory,) = left()
    assert directory.stat().st_mode & 0o777 == 0o700
    os.kill(process.pid if whom == "launcher" else pids[0], signal.SIGKILL)
    process.communicate()
    end = time.monotonic() + 15
    while left():
        assert time.monotonic() < end
    status, out, _ = poprun("--max-restarts=2", *SHELL, "echo $PILOTAGE_JOB_DIRECTORY; exit 3", TMPDIR=str(tmp_path))
    assert status == 3
    assert len(set(out.splitlines())) == 3
    assert not left()


def test_endless_ranges_are_refused_at_once(poprun, tmp_path):
    python = (sys.executable, "-c", "")
    for words, message in [
        (("--host", "h[0-99999999999]"), "names more than 65536 hosts"),
        (("--num-instances=1000000000000", "--num-ilds=1000000000000"), "A job has at most 65536"),
        (("--import-config", "/dev/zero"), "is a device or a socket"),
        (("--host-file", "/dev/zero"), "is a device or a socket"),
        (("--exchange-timeout", "1" + "0" * 30), "at most 31536000"),
    ]:
        status, _, err = poprun(*words, *python)
        assert status == 2, err
        assert message in err
        assert len(err.splitlines()) == 1, err
