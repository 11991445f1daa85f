"""The whole command on ports with accidents and on sound ones, in processes of their own."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

CASES = runpy.run_path(str(Path(__file__).parent / "cases.py"))
ACCIDENTS, SOUND = CASES["accidents"](), CASES["sound_ports"]()
SAMPLED = ("compile_error_swallowed", "device_iterations")
"""Cases that run with the normal tests."""

BIN = Path(sys.executable).parent


def marked(cases):
    """Cases as parameters; all but a few are for the long tests."""
    return [
        pytest.param(case, id=case.name, marks=pytest.mark.slow if case.name in SAMPLED else pytest.mark.long)
        for case in cases
    ]


def prove(case, folder, environment):
    """The result of `pilotage prove` on a case, and its exit status."""
    command = [sys.executable, "-m", "pilotage", "prove", *map(str, case.scripts), *case.arguments]
    command += ["--json", "result.json", "--picture", "off"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (folder / "result.json").exists(), ran.stderr
    return json.loads((folder / "result.json").read_text()), ran.returncode


@pytest.fixture
def environment(monkeypatch):
    """Launchers are found beside Python."""
    import os

    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", marked(ACCIDENTS))
def test_an_accident_is_found_by_name_at_its_line(case, tmp_path, environment):
    result, status = prove(case, tmp_path, environment)
    found = {(each["name"], each["file"], each["line"]) for each in result["findings"]}
    assert found == {(each.name, str(each.file), each.line) for each in case.expected}
    assert status == 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", marked(SOUND))
def test_a_sound_port_is_the_same_and_raises_no_alarm(case, tmp_path, environment):
    result, status = prove(case, tmp_path, environment)
    assert result["findings"] == []
    assert (result["verdict"], status) == ("same", 0), result["comparison"]
