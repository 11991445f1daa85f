"""The plain script and its port."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

PORTING = Path(__file__).parents[2] / "examples" / "porting"
COMPARED = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import pytorch_gpu, pytorch_ipu
few = {"epochs": 2, "data": "generated", "subset": 320}
plain = pytorch_gpu.main(**few).cpu().state_dict()
for custom_loss in (False, True):
    ported = pytorch_ipu.main(**few, custom_loss=custom_loss).state_dict()
    assert ported.keys() == plain.keys()
    for name, weight in plain.items():
        torch.testing.assert_close(ported[name], weight, rtol=1e-4, atol=1e-6)
"""


@pytest.mark.slow
def test_the_port_trains_the_same_weights_with_either_loss(run) -> None:
    done = run("-c", COMPARED, PORTING)
    assert done.returncode == 0, done.stderr
    plain, ported, custom = (line for line in done.stdout.splitlines() if line.startswith("Eval accuracy"))
    assert plain == ported == custom
    assert "over 300 images" in plain


@pytest.mark.slow
@pytest.mark.parametrize("script", [("pytorch_gpu.py",), ("pytorch_ipu.py",), ("pytorch_ipu.py", "--custom-loss")])
def test_each_script_runs_by_itself(run, script: tuple[str, ...]) -> None:
    done = run(PORTING / script[0], *script[1:], "--epochs", 1, "--subset", 64, "--data", "generated")
    assert done.returncode == 0, done.stderr
    assert "Eval accuracy: " in done.stdout


def test_the_readme_shows_the_actual_difference() -> None:
    plain, port = ((PORTING / name).read_text().splitlines() for name in ("pytorch_gpu.py", "pytorch_ipu.py"))
    changed = {
        line[0] + line[1:].strip() for line in difflib.ndiff(plain, port) if line[0] in "+-" and line[1:].strip()
    }
    # A line of the custom variant replaces one of the wrapper above it, not one of the plain script.
    changed.add("-return output, loss")
    shown = [
        line[0] + line[1:].strip()
        for block in (PORTING / "README.md").read_text().split("```diff\n")[1:]
        for line in block.split("```")[0].splitlines()
        if line[0] in "+-" and line[1:].strip()
    ]
    assert shown
    assert [line for line in shown if line not in changed] == []
