"""The whole command on ports with accidents and on sound ones, in processes of their own."""

import json
import runpy
import signal
import subprocess
import sys
import time
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


TRAINING = (
    "import torch\n"
    "weight = torch.nn.Parameter(torch.ones(3))\n"
    "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
    "for _ in range(6):\n"
    "    optimizer.zero_grad()\n"
    "    weight.square().sum().backward()\n"
    "    optimizer.step()\n"
)
SAVING, FAILING = "torch.save(weight, 'weight.pt')\n", "raise OSError('disk full')\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_audit", [False, True])
def test_a_script_that_crashes_after_the_compared_steps_is_status_2(script, tmp_path, is_audit):
    before, after = script(TRAINING + SAVING, "before.py"), script(TRAINING + FAILING, "after.py")
    scripts = [after] if is_audit else [before, after]
    command = [sys.executable, "-m", "pilotage", "prove", *map(str, scripts), "--steps", "6", "--picture", "off"]
    ran = subprocess.run([*command, "--json", "result.json"], cwd=tmp_path, capture_output=True, text=True)
    failure = "AFTER failed with exit status 1 after the last compared step. OSError: disk full"
    assert (ran.stderr, ran.returncode) == (f"pilotage prove: {failure}\n", 2)
    assert ("Up to the failure: no findings." if is_audit else "Up to the failure: same over 6 updates") in ran.stdout
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["verdict"] == (None if is_audit else "same")
    assert result["runs"]["AFTER"]["error"] == failure
    assert not result["is_same"]
    assert is_audit or result["runs"]["BEFORE"]["error"] is None


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_watched_script_too(script, tmp_path, ends, number):
    path = script(
        "import os, time\nopen('new', 'w').write(str(os.getpid()))\nos.rename('new', 'running')\ntime.sleep(120)\n"
    )
    command = [sys.executable, "-m", "pilotage", "prove", str(path)]
    pipe = subprocess.PIPE
    # Under nohup, the tests ignore SIGHUP, and a process that they start would too.
    before = signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True)
    signal.signal(number, before)
    with process:
        running = tmp_path / "running"
        while not running.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        output, errors = process.communicate()
    assert (output, errors) == ("", f"pilotage prove: ended by {number.name}\n")
    assert process.returncode == 128 + number
    assert ends(int(running.read_text()))
