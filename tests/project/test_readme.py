"""The examples on the first screen of the README: one for each door."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


EXAMPLES = dict(
    zip(
        ("pilotage", "poptorch"),
        re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL),
        strict=True,
    )
)


@pytest.mark.parametrize("door", EXAMPLES)
def test_the_example_is_twelve_lines_long(door):
    assert len([line for line in EXAMPLES[door].splitlines() if line.strip()]) <= 12
    assert EXAMPLES[door].startswith(f"import {door}, torch\n")


def test_the_first_screen_has_both_doors_and_a_training_curve():
    first_screen = README.read_text().partition("\n## ")[0]
    assert all(code in first_screen for code in EXAMPLES.values())
    assert "](docs/images/training-curve.png)" in first_screen


@pytest.mark.slow
@pytest.mark.parametrize("door", EXAMPLES)
def test_the_example_runs_as_printed_and_learns(door, tmp_path):
    ran = subprocess.run([sys.executable, "-c", EXAMPLES[door]], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (share,) = re.findall(r"(\d+)% right", ran.stdout)
    assert int(share) >= 80
