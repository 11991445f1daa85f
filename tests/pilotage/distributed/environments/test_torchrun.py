from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.environments.torchrun import torchrun_world
from pilotage.distributed.world import World


@given(st.integers(1, 99).flatmap(lambda size: st.tuples(st.integers(0, size - 1), st.just(size))))
def test_torchs_variables_are_read(place):
    rank, size = place
    variables = {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank % 4),
        "MASTER_ADDR": "node0",
        "MASTER_PORT": "29500",
    }
    expected = World(rank=rank, size=size, local_rank=rank % 4, address="node0", port=29500, launcher="torchrun")
    assert torchrun_world(variables) == expected


def test_an_incomplete_set_of_variables_is_not_a_launcher():
    assert torchrun_world({"RANK": "0"}) is None
    assert torchrun_world({"WORLD_SIZE": "2"}) is None


SCRIPT = """
import torch
import pilotage
from pilotage.distributed.peers import peers_here

peers = peers_here()
model = torch.nn.Linear(1, 1, bias=False)
with torch.no_grad():
    model.weight.fill_(0)
step = pilotage.training(
    model, torch.optim.SGD(model.parameters(), lr=0.5), loss=torch.nn.L1Loss(), distributed=True,
    tier="eager", backend="cpu")
step(torch.full((2, 1), 1.0 + 2 * peers.world.rank), torch.full((2, 1), 100.0))
print(f"{peers.world.launcher} {peers.world.rank}: {model.weight.item()}", flush=True)
"""


@pytest.mark.slow
def test_instances_of_torchs_own_launcher_train_together(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    ran = subprocess.run(launcher, capture_output=True, text=True, env=environment, timeout=100)
    assert ran.returncode == 0, ran.stderr
    # Two processes write to one pipe, so their lines may be mixed.
    assert sorted(re.findall(r"torchrun \d: 1\.0", ran.stdout)) == ["torchrun 0: 1.0", "torchrun 1: 1.0"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "node0"}, True),
        ({"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "node0"}, False),
        ({"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}, False),
        ({"MASTER_ADDR": "127.0.0.1"}, True),
        ({"MASTER_ADDR": "localhost", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}, False),
        ({"MASTER_ADDR": "node0"}, False),
    ],
)
def test_processes_on_one_host_know_that_they_are(told, expected):
    world = torchrun_world({"RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "29500", **told})
    assert world is not None
    assert world.one_host is expected
