"""Two hosts with networks of their own, made of namespaces, which only a wire connects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
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
    model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), distributed=True, tier="graph", backend="cpu")
for number in range(3):
    whole = torch.arange(24.0).reshape(8, 3) * (number + 1) / 24
    mine = whole.chunk(peers.world.size)[peers.world.rank]
    step(mine, mine.sum(1, keepdim=True) * 2)
places = peers.gather((peers.world.local_rank, os.environ["GLOO_SOCKET_IFNAME"]))
if peers.world.rank == 0:
    print(json.dumps([places, model.weight.tolist(), model.bias.tolist()]))
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def two_hosts(tmp_path):
    """The addresses of two hosts; the remote shell reaches each by its address."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and the command ip")
    names = [f"pilotage-{os.getpid()}-{number}" for number in (1, 2)]
    made = []
    try:
        try:
            for name in names:
                ip("netns", "add", name)
                made.append(name)
            ip("link", "add", "wire1", "netns", names[0], "type", "veth", "peer", "name", "wire2", "netns", names[1])
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        for number, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", f"wire{number}")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", f"wire{number}", "up")
        shell = tmp_path / "remote-shell"
        shell.write_text(
            f'#!/bin/sh\nexec ip netns exec pilotage-{os.getpid()}-"${{1##*.}}" env -i PATH=/usr/bin:/bin sh -c "$2"\n'
        )
        shell.chmod(0o755)
        yield str(shell)
    finally:
        for name in made:
            ip("netns", "delete", name)


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
