import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "examples" / "poptorch"

RUNS = {
    "mnist": (["--samples", "320", "--epochs", "1"], r"epoch 1: loss \d\.\d+\naccuracy [\d.]+% of 400 images"),
    "lstm_forecast": (["--steps", "4"], r"first half: loss [\d.]+\nsecond half: loss [\d.]+\nmean error"),
    "bert_pipelined": (["--updates", "1"], r"BeginBlock\(user_id='?layer 0'?, ipu_id=0\).*\nupdate 1: loss 3\.\d+"),
    "vit": (["--calls", "1"], r"accuracy [\d.]+%, weights in torch\.float16"),
    "gan": (["--rounds", "3"], r"distance of made points from the centre [\d.]+"),
    "host_and_print": ([], r"above their median: \[\[.*\nsmoothed by a program from a file of \d+ KiB: \["),
}


def test_every_program_is_run():
    assert {path.stem for path in PROGRAMS.glob("*.py")} == set(RUNS)
    assert all(f"`{name}.py`" in (PROGRAMS / "README.md").read_text() for name in RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_program_written_for_poptorch_runs_unchanged(name, tmp_path):
    arguments, expected = RUNS[name]
    run = subprocess.run(
        [sys.executable, "-W", "error", PROGRAMS / f"{name}.py", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert run.returncode == 0, run.stderr
    assert re.search(expected, run.stdout), run.stdout
    assert "The model is trained on the loss" not in run.stderr
    assert "pilotage" not in (PROGRAMS / f"{name}.py").read_text()
    assert not list(tmp_path.iterdir())
