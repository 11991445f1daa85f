"""`pilotage prove` where the original, or the port, or both run on a card."""

import json
import subprocess
import sys

import pytest
import torch

ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card")

NETWORK = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout({dropout}), nn.Linear(144, 3)
        )

    def forward(self, images):
        return self.layers(images)

torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 1, 8, 8), torch.arange(160) % 3)
model = Network()
"""

EAGER = """
model.to(sys.argv[1])
optimizer = torch.optim.{optimizer}
criterion = nn.CrossEntropyLoss()
for images, labels in DataLoader(data, batch_size=16, shuffle=True):
    images, labels = images.to(sys.argv[1]), labels.to(sys.argv[1])
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "eager.pt")
"""

PILOTAGE = """
import pilotage
step = pilotage.training(model, torch.optim.{optimizer}, loss=nn.CrossEntropyLoss(), backend="cuda")
for images, labels in DataLoader(data, batch_size=16, shuffle=True):
    step(images, labels)
torch.save(model.state_dict(), "pilotage.pt")
"""

POPTORCH = """
import poptorch

class WithLoss(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network, self.criterion = network, nn.CrossEntropyLoss()

    def forward(self, images, labels):
        output = self.network(images)
        return output, self.criterion(output, labels)

options = poptorch.Options().deviceIterations(5)
training = poptorch.trainingModel(WithLoss(model), options, poptorch.optim.{optimizer})
for images, labels in poptorch.DataLoader(options, data, batch_size=16, shuffle=True):
    training(images, labels)
training.detachFromDevice()
torch.save(model.state_dict(), "poptorch.pt")
"""

SGD, ADAM = "SGD(model.parameters(), lr=0.05, momentum=0.9)", "AdamW(model.parameters(), lr=1e-3)"


def prove(folder, before, after, *arguments):
    """The result of the command on two scripts, and its exit status."""
    (folder / "before.py").write_text(before)
    (folder / "after.py").write_text(after)
    command = [sys.executable, "-m", "pilotage", "prove", "before.py", "after.py", "--steps", "10"]
    command += ["--json", "result.json", "--picture", "off", "--", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (folder / "result.json").exists(), ran.stdout + ran.stderr
    return json.loads((folder / "result.json").read_text()), ran.returncode


@ON_CUDA
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("optimizer", [SGD, ADAM], ids=["sgd", "adamw"])
@pytest.mark.parametrize("after", [PILOTAGE, POPTORCH], ids=["pilotage", "poptorch"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_port_to_the_card_is_the_same(tmp_path, device, after, optimizer):
    network = NETWORK.format(dropout=0.0)
    result, status = prove(
        tmp_path, network + EAGER.format(optimizer=optimizer), network + after.format(optimizer=optimizer), device
    )
    assert result["findings"] == []
    assert (result["verdict"], status) == ("same", 0), result["comparison"]


@ON_CUDA
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_dropout_on_the_card_draws_the_numbers_of_the_original(tmp_path):
    network = NETWORK.format(dropout=0.5)
    result, status = prove(
        tmp_path, network + EAGER.format(optimizer=SGD), network + PILOTAGE.format(optimizer=SGD), "cuda"
    )
    assert (result["verdict"], status) == ("same", 0), result["comparison"]


@ON_CUDA
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_port_that_stays_on_the_processor_is_reported(tmp_path):
    network = NETWORK.format(dropout=0.0)
    at_home = EAGER.replace("model.to(sys.argv[1])", "device = torch.device('cuda'); model.cpu()").replace(
        "images.to(sys.argv[1]), labels.to(sys.argv[1])", "images.cpu(), labels.cpu()"
    )
    result, status = prove(
        tmp_path, network + EAGER.format(optimizer=SGD), network + at_home.format(optimizer=SGD), "cuda"
    )
    assert "host-fallback" in {each["name"] for each in result["findings"]}, result
    assert status == 1
