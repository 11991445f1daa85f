"""Two hosts with separate networks, made of namespaces connected by a virtual wire."""

from __future__ import annotations

import json
import sys

import pytest
import torch

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, socket, sys
import torch
import pilotage
from pilotage.distributed.peers import peers_here

peers = peers_here()
torch.manual_seed(peers.world.rank)
model = torch.nn.Linear(3, 1)
with torch.no_grad():
    model.weight.fill_(1), model.bias.zero_()
step = pilotage.training(
    model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), distributed=True,
    tier="graph", backend="cpu")
for number in range(3):
    whole = torch.arange(24.0).reshape(8, 3) * (number + 1) / 24
    mine = whole.chunk(peers.world.size)[peers.world.rank]
    step(mine, mine.sum(1, keepdim=True) * 2)
places = peers.gather((peers.world.local_rank, os.environ["GLOO_SOCKET_IFNAME"]))
if peers.world.rank == 0:
    print(json.dumps([places, model.weight.tolist(), model.bias.tolist()]))
"""


def test_two_instances_on_each_of_two_hosts_train_together(poprun, two_hosts, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    status, out, err = poprun(
        "--host=10.77.0.[1-2]", "--num-instances=4", sys.executable, script, PILOTAGE_REMOTE_SHELL=two_hosts
    )
    assert status == 0, err
    places, weight, bias = json.loads(out.removeprefix("[1,0]<stdout>:"))
    assert places == [[0, "wire1"], [1, "wire1"], [0, "wire2"], [1, "wire2"]]
    model = torch.nn.Linear(3, 1)
    with torch.no_grad():
        model.weight.fill_(1)
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(3):
        whole = torch.arange(24.0).reshape(8, 3) * (number + 1) / 24
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(whole), whole.sum(1, keepdim=True) * 2).backward()
        optimizer.step()
    torch.testing.assert_close(torch.tensor(weight), model.weight.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.tensor(bias), model.bias.detach(), rtol=1e-5, atol=1e-6)
