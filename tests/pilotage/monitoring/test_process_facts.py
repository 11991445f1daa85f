import os
import pwd
import subprocess
import sys

from pilotage.monitoring.process_facts import command_of, seconds_of, user_of


def test_this_process_belongs_to_this_user_and_has_been_there_for_a_while():
    assert user_of(os.getpid()) == pwd.getpwuid(os.geteuid()).pw_name
    assert 0 <= seconds_of(os.getpid()) < 24 * 60 * 60


def test_a_command_is_shown_with_its_arguments_and_without_the_interpreters_folder():
    command = [sys.executable, "-c", "print(flush=True); input()", "--epochs", "5 or 6"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    shown = command_of(child.pid)
    child.communicate(b"\n")
    assert shown == f"{os.path.basename(sys.executable)} -c print(flush=True); input() --epochs 5 or 6"


def test_of_a_process_that_is_gone_nothing_is_known():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert user_of(child.pid) is None
    assert command_of(child.pid) == ""
    assert seconds_of(child.pid) is None
