import re
import subprocess
import sys
from argparse import Namespace

import pytest

from pilotage.cli import main as command_line
from pilotage.cli.command import Command
from pilotage.errors import OptionError


def command_that(run):
    return Command(name="try", summary="Try.", add_arguments=lambda parser: None, run=run)


def test_without_a_command_the_help_names_every_command(capsys):
    assert command_line.main([]) == 0
    printed = capsys.readouterr().out
    for command in command_line.COMMANDS:
        assert re.search(rf"^ +{command.name} +\S", printed, re.MULTILINE)


def test_an_unknown_command_is_refused_and_the_known_ones_are_named(capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["cure"])
    assert stopped.value.code == 2
    assert "doctor" in capsys.readouterr().err


def test_a_pilotage_error_becomes_one_line_and_a_failing_exit_code(monkeypatch, capsys):
    def fail(arguments: Namespace) -> int:
        raise OptionError("No device named 'tpu'. Choose one of: cpu.")

    monkeypatch.setattr(command_line, "COMMANDS", (command_that(fail),))
    assert command_line.main(["try"]) == 1
    assert capsys.readouterr().err == "pilotage try: No device named 'tpu'. Choose one of: cpu.\n"


def test_an_interrupt_ends_without_a_traceback(monkeypatch, capsys):
    def interrupted(arguments: Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "COMMANDS", (command_that(interrupted),))
    assert command_line.main(["try"]) == 130
    assert capsys.readouterr().err == "pilotage try: interrupted\n"


def test_a_progress_bar_of_the_interrupted_code_ends_before_the_last_line(monkeypatch, capsys):
    class Bar:
        def __del__(self) -> None:
            print("50%", file=sys.stderr)

    def interrupted(arguments: Namespace) -> int:
        bar = Bar()
        raise KeyboardInterrupt(bar.__class__)

    monkeypatch.setattr(command_line, "COMMANDS", (command_that(interrupted),))
    assert command_line.main(["try"]) == 130
    assert capsys.readouterr().err == "50%\npilotage try: interrupted\n"


def test_python_m_pilotage_shows_the_help_quickly_without_torch():
    program = "import sys; sys.modules['torch'] = None; sys.argv = ['pilotage', '--version']; "
    program += "import runpy; runpy.run_module('pilotage', run_name='__main__')"
    answered = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"pilotage \d+\.\d+\.\d+\S*\n", answered.stdout)
