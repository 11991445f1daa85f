"""The lines that the engine writes, as a user sees them."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from pilotage import logs
from pilotage.events import BackendChosen, CompilationProgress, Noted, StepsRun, Warned

CHOSEN = BackendChosen(backend="cpu", device="cpu", tier="graph", reason="somebody asks for it")


@pytest.fixture
def say(monkeypatch):
    """Sends an event to the engine's logger, as if the program had not set up logging."""
    logger = logging.getLogger("pilotage")
    bare = {"handlers": [], "level": logging.NOTSET, "propagate": False}

    def tell(event):
        # pytest adds its own handlers when a test starts, so they are removed in the test itself.
        for name, value in bare.items():
            monkeypatch.setattr(logger, name, value)
        bare.clear()
        logs.log_event(event)

    logger.manager._clear_cache()
    yield tell
    logger.manager._clear_cache()


def test_one_line_says_where_a_program_runs_and_why(say, capsys):
    say(CHOSEN)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"\[\d\d:\d\d:\d\d\.\d{3}\] \[pilotage\] \[info\] Running on cpu, tier graph: somebody asks for it\.", line
    )


def test_a_program_with_a_name_is_called_by_it(say, capsys):
    say(replace(CHOSEN, program="mnist"))
    assert "Running 'mnist' on cpu" in capsys.readouterr().err


def test_warnings_are_written_and_progress_is_not(say, capsys):
    say(Warned(message="mind the gap"))
    say(CompilationProgress(fraction=0.5, doing="loading"))
    say(StepsRun(device="cpu", tier="graph", micro_batches=1, updates=1, seconds=0.1))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("[pilotage] [warning] mind the gap")


def test_notes_are_logged_only_if_the_user_can_act_on_them(say, capsys):
    say(Noted(message="the stages share a card"))
    say(Noted(message="there is no compiler", can_be_changed=True))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("[pilotage] [info] there is no compiler")


def test_the_same_line_is_written_once(say, capsys):
    for message in ("one", "one", "two", "one"):
        say(Warned(message=message))
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["one", "two"]


@pytest.mark.parametrize(("level", "lines"), [("debug", 2), ("INFO", 2), ("WARNING", 1), ("error", 0)])
def test_the_environment_sets_the_level(say, monkeypatch, capsys, level, lines):
    monkeypatch.setenv("PILOTAGE_LOG_LEVEL", level)
    say(CHOSEN)
    say(Warned(message="mind the gap"))
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_logging_configured_by_the_application_is_respected(monkeypatch, capsys):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    monkeypatch.setattr(logs.logger, "handlers", [handler])
    monkeypatch.setattr(logs.logger, "propagate", False)
    monkeypatch.setattr(logs.logger, "level", logging.WARNING)
    logs.logger.manager._clear_cache()
    for event in (CHOSEN, Warned(message="mind the gap"), Warned(message="mind the gap")):
        logs.log_event(event)
    assert [record.getMessage() for record in records] == ["mind the gap"] * 2
    assert capsys.readouterr().err == ""


def test_lines_go_to_the_current_standard_error(say, monkeypatch):
    say(Warned(message="first"))
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stderr", elsewhere)
    say(Warned(message="second"))
    assert "second" in elsewhere.getvalue()


@pytest.mark.slow
def test_a_script_shows_one_line_for_each_choice_and_one_for_the_comparison(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import torch, pilotage
            for _ in range(2):
                model = pilotage.inference(torch.nn.Linear(2, 2))
                model(torch.ones(1, 2))
                model(torch.ones(1, 2))
            """
        )
    )
    result = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"PILOTAGE_BACKEND": "cpu"},
    )
    chosen, compared = result.stderr.splitlines()
    assert chosen.endswith("[info] Running on cpu, tier graph: PILOTAGE_BACKEND asks for it.")
    assert compared.endswith("[info] Agrees with eager PyTorch: 1 output (within 0).")
    assert result.stdout == ""
