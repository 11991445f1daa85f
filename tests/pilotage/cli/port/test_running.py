from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotage.cli.main import main

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, drop_last=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_the_default_prints_a_difference_and_writes_nothing(script, capsys):
    assert main(["port", str(script), "--to", "poptorch"]) == 0
    printed = capsys.readouterr()
    assert "+        loss = training_model(inputs, targets)" in printed.out
    assert "1 of 1 files change; nothing is left to do by hand." in printed.err
    assert script.read_text() == SCRIPT
    assert list(script.parent.iterdir()) == [script]


def test_the_result_can_be_written_elsewhere_or_in_place(script, capsys):
    other = script.parent / "other.py"
    assert main(["port", str(script), "--to", "poptorch", "-o", str(other)]) == 0
    assert script.read_text() == SCRIPT
    assert main(["port", str(script), "--to", "poptorch", "--in-place"]) == 0
    assert script.read_text() == other.read_text() != SCRIPT
    assert main(["port", str(script), "--to", "poptorch", "--in-place"]) == 0
    assert "0 of 1 files change" in capsys.readouterr().err


def test_a_refusal_gives_its_place_and_status_1_and_is_in_the_report(script, capsys):
    script.write_text(
        SCRIPT.replace("        optimizer.step()", "        model.weight.grad *= 2\n        optimizer.step()")
    )
    report = script.parent / "report.json"
    assert main(["port", str(script), "--to", "poptorch", "--in-place", "--report", str(report)]) == 1
    assert f"{script}:16:9: refused: model.weight.grad exists only inside" in capsys.readouterr().err
    (finding,) = [each for each in json.loads(report.read_text())["findings"] if each["severity"] == "refused"]
    assert (finding["rule"], finding["line"], finding["column"]) == ("manual-gradients", 16, 9)
    assert "training_model" not in script.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "poptorch"], "Give scripts or folders"),
        (["{}"], "Choose a target: --to poptorch"),
        (["{}", "--to", "poptorch", "--in-place", "-o", "x.py"], "not both"),
        (["{}/nothing.py", "--to", "poptorch"], "nothing.py: the file does not exist"),
        (["--explain", "nothing"], "No rule is named"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(script, capsys, arguments, said):
    given = [each.format(script.parent if "/nothing" in each else script) for each in arguments]
    assert main(["port", *given]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1


def test_a_rule_is_explained(capsys):
    assert main(["port", "--explain", "scheduler"]) == 0
    assert "setOptimizer" in capsys.readouterr().out


@pytest.mark.slow
def test_a_port_is_proved_before_it_is_written(script, capsys):
    command = ["port", str(script), "--to", "pilotage", "--in-place", "--prove", "--steps", "6"]
    assert main(command) == 0
    assert "Same over 6 updates" in capsys.readouterr().out
    assert "training_model = pilotage.training(" in script.read_text()
    assert list(script.parent.iterdir()) == [script]
