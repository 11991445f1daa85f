import json

import pytest

from pilotage.cli.main import main

SCRIPT = """
import poptorch, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(8))

    def forward(self, x, target):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x, nn.functional.mse_loss(x, target)

model = Net()
options = poptorch.Options()
options.Training.gradientAccumulation(4)
train = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))
x = torch.zeros(16, 128)
train(x, x)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_script_is_predicted_on_the_screen_and_in_a_file(script, tmp_path, capsys):
    status = main(
        ["predict", str(script), "--device", "bow,h200", "--json", str(tmp_path / "a.json"), "--seconds", "0"]
    )
    shown = capsys.readouterr().out
    assert status == 0
    assert "train.py: training, 132,096 parameters in float32, micro-batch 4" in shown
    assert "Graphcore Bow IPU" in shown
    assert "NVIDIA H200" in shown
    written = json.loads((tmp_path / "a.json").read_text())
    assert [each["name"] for each in written["devices"]] == ["bow", "h200"]
    assert written["format"] == "pilotage report 1"


def test_a_split_is_printed_and_written_into_the_script(script, capsys):
    assert main(["predict", str(script), "--device", "bow", "--seconds", "0", "--split", "2", "--apply"]) == 0
    shown = capsys.readouterr().out
    line = 'model.layers[4] = poptorch.BeginBlock(model.layers[4], "stage 1", ipu_id=1)'
    assert line in shown
    assert "times as fast as equally many parts" in shown
    assert line in script.read_text().splitlines()
    assert main(["predict", str(script), "--device", "bow", "--seconds", "0"]) == 0
    assert "2 x Graphcore Bow IPU" in capsys.readouterr().out


def test_the_models_are_listed(capsys):
    assert main(["predict", "--devices"]) == 0
    assert "Graphcore Mk2 IPU" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "Give a script"),
        (["x.py", "--device", "toaster"], "No device model"),
        (["x.py", "--device", ","], "names no device model"),
        (["x.py", "--apply"], "give --split N"),
        (["x.py"], "does not exist"),
        (["x.py", "--json", "/nowhere/a.json"], "does not exist"),
    ],
)
def test_a_wrong_command_line_is_refused(words, problem, capsys):
    assert main(["predict", *words]) == 1
    assert problem in capsys.readouterr().err
