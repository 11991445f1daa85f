"""The notebook of "Faster in five lines": made from its script, and stored with the outputs of a real run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples/faster"


@pytest.fixture(scope="module")
def cells():
    return json.loads((FOLDER / "faster.ipynb").read_text())["cells"]


def test_the_notebook_has_the_cells_of_the_script(cells):
    script = (FOLDER / "faster.py").read_text()
    parts = re.findall(r"^# %%\n(.*?)(?=^# %%|\Z)", script, flags=re.MULTILINE | re.DOTALL)
    code = ["".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"]
    assert code == [part.strip() for part in parts]


def test_its_outputs_name_the_machine_and_were_printed_without_errors(cells):
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    text = "".join(line for output in outputs for line in output.get("text", []))
    assert re.search(r"^\S.*; Python 3\.\d+\.\d+\ntorch 2\.\d+\.\d+\S*, Pilotage \d", text, re.MULTILINE)
    assert "twenty steps for a call" in text
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert [output for output in outputs if "image/png" in output.get("data", {})]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")


@pytest.mark.slow
def test_the_script_trains_the_same_weights_in_each_loop(tmp_path):
    script = (FOLDER / "faster.py").read_text().replace("EPOCHS = 6", "EPOCHS = 1")
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    differences = re.findall(r"after 400 steps the weights differ by at most (\S+)", ran.stdout)
    assert len(differences) == 2
    assert all(float(each) < 1e-5 for each in differences)
