"""Checks docs/monitoring.md against the commands."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.cli.monitor import COMMAND

DOCUMENT = (Path(__file__).parents[4] / "docs/monitoring.md").read_text()
MONITOR = [sys.executable, "-m", "pilotage.cli.monitor.gc_monitor"]


def block(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    return text


def titles(screen: str) -> list[list[str]]:
    """The titles of the columns of both tables."""
    rows = [line for line in screen.splitlines() if "| Type |" in line or " Command " in line]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def has_stepped(look: dict) -> bool:
    return any(program["steps"] for process in look["processes"] for program in process["programs"])


def test_every_option_is_described():
    parser = __import__("argparse").ArgumentParser(add_help=False)
    COMMAND.add_arguments(parser)
    for action in parser._actions:
        assert f"`{action.option_strings[-1]}" in DOCUMENT, action.option_strings


@pytest.mark.slow
def test_the_example_is_shown_as_it_is_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    monkeypatch.setenv("COLUMNS", "110")
    script = tmp_path / "train.py"
    script.write_text(block("python"))
    training = subprocess.Popen([sys.executable, script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watching = subprocess.Popen([*MONITOR, "--json", "--watch", "0.2"], stdout=subprocess.PIPE, text=True)
    try:
        printed = next(look for look in map(json.loads, watching.stdout) if has_stepped(look))
        screen = subprocess.run(MONITOR, capture_output=True, text=True, check=True).stdout
    finally:
        for child in (training, watching):
            child.kill()
            child.communicate()
    assert "train.py" in screen
    devices, processes = titles(block("console"))
    shown_devices, shown_processes = titles(screen)
    # A machine with sensors shows more of its devices than the one of the document.
    assert set(devices) <= set(shown_devices)
    assert set(processes) - {"Clock"} <= set(shown_processes)
    assert printed["processes"][0]["programs"][0]["trains"]
    assert all(f"`{key}`" in DOCUMENT for key in printed)
