from __future__ import annotations

import os
import shlex

import pytest

from pilotage.distributed.launcher.remote import RemoteShell, check_remote_shell, chosen_remote_shell, remote_command
from pilotage.errors import OptionError

COMMAND = ["python3", "a file.py", "--x='y'"]


def program(folder, name, text="exit 0"):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_ssh_gets_a_command_line_for_the_remote_shell():
    *shell, host, line = remote_command("far", COMMAND, shell=None, environment={})
    assert shell == ["ssh", "-o", "BatchMode=yes"]
    assert (host, shlex.split(line)) == ("far", COMMAND)


@pytest.mark.parametrize(
    ("shell", "names_host"), [(RemoteShell.SRUN, ["--nodelist=far"]), (RemoteShell.MPIRUN, ["--host", "far"])]
)
def test_srun_and_mpirun_get_the_arguments_unquoted(shell, names_host):
    words = remote_command("far", COMMAND, shell=shell, environment={})
    assert words[0] == shell.value
    assert words[-3 - len(names_host) :] == [*names_host, *COMMAND]


def test_only_mpirun_gets_further_arguments():
    told = {
        shell: remote_command("far", COMMAND, shell=shell, more=("--mca",), environment={}) for shell in RemoteShell
    }
    assert [shell for shell, words in told.items() if "--mca" in words] == [RemoteShell.MPIRUN]


def test_the_users_remote_shell_takes_precedence():
    words = remote_command("far", COMMAND, shell=RemoteShell.SRUN, environment={"PILOTAGE_REMOTE_SHELL": "rsh -q"})
    assert words[:3] == ["rsh", "-q", "far"]


def test_inside_a_slurm_allocation_srun_is_used_if_it_exists(tmp_path):
    here = {"SLURM_JOB_ID": "7", "PATH": str(tmp_path)}
    assert chosen_remote_shell(here) is RemoteShell.SSH
    program(tmp_path, "srun")
    assert chosen_remote_shell(here) is RemoteShell.SRUN
    assert chosen_remote_shell({"PATH": str(tmp_path)}) is RemoteShell.SSH


def test_a_missing_remote_shell_is_refused_with_alternatives(tmp_path):
    with pytest.raises(OptionError, match=r"needs mpirun, which was not found.*ssh, srun"):
        check_remote_shell(RemoteShell.MPIRUN, {"PATH": str(tmp_path)})
    program(tmp_path, "mpirun")
    check_remote_shell(RemoteShell.MPIRUN, {"PATH": str(tmp_path)})


# A substitute for a site's launcher: it drops its own options and runs the command on this machine.
STAND_IN = """
while [ "$1" != "${1#-}" ]; do
  case "$1" in -np|--bind-to|--host|--mca) shift;; esac
  shift
done
exec "$@"
"""


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["srun", "mpirun"])
def test_instances_on_two_hosts_are_started_and_ended_by_the_launcher_of_the_site(poprun, tmp_path, shell):
    program(tmp_path, shell, STAND_IN)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    words = (f"--remote-shell={shell}", "--host=localhost,127.0.0.2", "--num-instances=2", "sh", "-c")
    status, out, err = poprun(*words, "echo of $POPDIST_NUM_TOTAL_REPLICAS", PATH=path)
    assert status == 0, err
    assert sorted(out.splitlines()) == ["[1,0]<stdout>:of 2", "[1,1]<stdout>:of 2"]
    status, _, err = poprun(*words, "test $POPDIST_REPLICA_INDEX_OFFSET = 0 && sleep 300; exit 5", PATH=path)
    assert status == 5
    assert "Instance 1 on 127.0.0.2 was the first to fail, with status 5" in err
