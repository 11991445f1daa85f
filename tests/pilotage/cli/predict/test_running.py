import json
import runpy

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
    first = 'model.layers[0] = poptorch.BeginBlock(model.layers[0], "stage 0", ipu_id=0)'
    line = 'model.layers[4] = poptorch.BeginBlock(model.layers[4], "stage 1", ipu_id=1)'
    assert first in shown
    assert line in shown
    assert "times as fast as equally many parts" in shown
    assert line in script.read_text().splitlines()
    assert main(["predict", str(script), "--device", "bow", "--seconds", "0"]) == 0
    assert "2 x Graphcore Bow IPU" in capsys.readouterr().out


@pytest.mark.parametrize("accumulation", [4, 7])
def test_a_split_says_what_a_pipeline_of_poptorch_needs_and_then_runs(script, capsys, accumulation):
    script.write_text(
        SCRIPT.replace("Accumulation(4)", f"Accumulation({accumulation})").replace("(16,", f"({4 * accumulation},")
    )
    assert main(["predict", str(script), "--device", "bow", "--seconds", "0", "--split", "4", "--apply"]) == 0
    said = "options.Training.gradientAccumulation(7) or more" in capsys.readouterr().out
    assert said == (accumulation < 7)
    if not said:
        runpy.run_path(str(script))


PILOTAGE_SCRIPT = """
import pilotage, torch
from torch import nn

model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(4)))
step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss())
x = torch.zeros(16, 64)
step(x, x)
"""


def test_a_split_is_written_into_a_script_for_pilotage_and_then_runs(script, capsys):
    script.write_text(PILOTAGE_SCRIPT)
    assert main(["predict", str(script), "--device", "bow", "--seconds", "0", "--split", "2", "--apply"]) == 0
    assert "model.register_forward_pre_hook(lambda *_: pilotage.enter_stage(0))" in script.read_text().splitlines()
    runpy.run_path(str(script))
    capsys.readouterr()
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
