"""The example on the first screen of the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def example() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    return code


def test_the_example_is_twelve_lines_long():
    assert len([line for line in example().splitlines() if line.strip()]) <= 12


@pytest.mark.slow
def test_the_example_runs_as_printed_and_learns(tmp_path):
    ran = subprocess.run([sys.executable, "-c", example()], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (share,) = re.findall(r"(\d+)% right", ran.stdout)
    assert int(share) >= 80
