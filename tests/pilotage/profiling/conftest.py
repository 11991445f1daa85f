"""Scripts in the styles that a profile follows, run by the command itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)

    def forward(self, x, labels=None):
        scores = self.head(self.body(x))
        return scores if labels is None else (scores, nn.functional.cross_entropy(scores, labels))


data = TensorDataset(torch.randn(320, 32), torch.randint(4, (320,)))
"""

EAGER = """
from torch.utils.data import DataLoader

model = Model()
optimizer = torch.optim.Adam(model.parameters())
for x, labels in DataLoader(data, batch_size=16):
    optimizer.zero_grad()
    model(x, labels)[1].backward()
    optimizer.step()
print("the end")
"""

POPTORCH = """
import poptorch

options = poptorch.Options()
options.Training.gradientAccumulation(2)
model = Model()
train = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
for x, labels in poptorch.DataLoader(options, data, batch_size=8):
    train(x, labels)
print("the end")
"""

INFERENCE = """
import pilotage

model = pilotage.inference(Model().eval())
for start in range(0, 160, 16):
    model(data.tensors[0][start : start + 16])
"""


class Profiled:
    """A script, and the files that its profile left."""

    def __init__(self, folder: Path, source: str, *options: str) -> None:
        self.folder = folder
        (folder / "train.py").write_text(MODEL + source)
        command = [sys.executable, "-m", "pilotage", "profile", "train.py", "--warmup", "2", "--steps", "4"]
        command += ["--looks", "2", "--json", "profile.json", *options]
        self.run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert self.run.returncode == 0, self.run.stdout + self.run.stderr
        self.report = json.loads((folder / "profile.json").read_text())
        (self.device,) = self.report["devices"]


@pytest.fixture(scope="session")
def eager(tmp_path_factory) -> Profiled:
    options = ["--no-predict", "-o", "profile.html", "--trace", "profile.trace.json", "--tensorboard", "traces"]
    return Profiled(tmp_path_factory.mktemp("eager"), EAGER, *options)


@pytest.fixture(scope="session")
def poptorch(tmp_path_factory) -> Profiled:
    return Profiled(tmp_path_factory.mktemp("poptorch"), POPTORCH)


@pytest.fixture(scope="session")
def inference(tmp_path_factory) -> Profiled:
    return Profiled(tmp_path_factory.mktemp("inference"), INFERENCE, "--no-predict")
