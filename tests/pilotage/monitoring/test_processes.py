import os
import pwd
import subprocess
import sys
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pilotage.monitoring.processes import (
    ProcessIdentity,
    command_of,
    current_namespace,
    process_state,
    seconds_of,
    user_of,
)


def test_this_process_is_alive_and_identified_by_its_file_name():
    this = ProcessIdentity.of_this_process()
    assert this.pid == os.getpid()
    assert this.is_alive()
    assert ProcessIdentity.from_name(this.name_for("0123abcd")) == this


def test_a_reused_pid_is_another_process():
    this = ProcessIdentity.of_this_process()
    assert not replace(this, started=this.started - 1).is_alive()


def test_a_process_that_was_killed_is_dead_even_before_its_parent_has_noticed():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity(pid=child.pid, started=process_state(child.pid).started, namespace=current_namespace())
    assert identity.is_alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_state(child.pid).letter == "Z"
    assert not identity.is_alive()
    child.stdin.close()
    child.wait()
    assert process_state(child.pid) is None
    assert not identity.is_alive()


def test_a_strange_program_name_causes_no_confusion(tmp_path):
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to(sys.executable)
    child = subprocess.Popen([odd, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    later = process_state(child.pid)
    assert later.letter in "RSD"
    assert later.started >= process_state(os.getpid()).started
    child.communicate(b"\n")


@given(st.text() | st.from_regex(r"[\d-]+[0-9a-f-]*", fullmatch=True))
def test_any_file_name_is_parsed_or_rejected(name):
    process = ProcessIdentity.from_name(name)
    assert process is None or name.startswith(f"{name.split('-')[0]}-")
    assert process is None or isinstance(process.is_alive(), bool)


def test_this_process_belongs_to_this_user_and_has_an_age():
    assert user_of(os.getpid()) == pwd.getpwuid(os.geteuid()).pw_name
    assert 0 <= seconds_of(os.getpid()) < 24 * 60 * 60


def test_a_command_is_shown_with_its_arguments_and_without_the_interpreters_folder():
    command = [sys.executable, "-c", "print(flush=True); input()", "--epochs", "5 or 6"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    shown = command_of(child.pid)
    child.communicate(b"\n")
    assert shown == f"{os.path.basename(sys.executable)} -c print(flush=True); input() --epochs 5 or 6"


def test_nothing_is_known_about_an_ended_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert user_of(child.pid) is None
    assert command_of(child.pid) == ""
    assert seconds_of(child.pid) is None
