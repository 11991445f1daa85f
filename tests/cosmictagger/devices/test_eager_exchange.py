"""Training with DistributedDataParallel when one process is silent or dies."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, signal, sys
from datetime import timedelta
import torch
import torch.distributed as dist
from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.mode import Train
from cosmictagger.data.events import Batch
from cosmictagger.devices.choosing import device_for
from dataclasses import replace
from pilotage import PilotageError

folder, accident = sys.argv[1:]
run = Run(id="x", compute_mode=ComputeMode.CPU, distributed=True)
small = replace(A21, depth=0, n_initial_filters=2, bottleneck_deepest=2, blocks_deepest_layer=1)
config = Configuration(run=run, mode=Train(), network=small)
device = device_for(config)
processes = device.join(run)
executor = device.executor(config, processes)
image = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(processes.rank))
labels = torch.zeros(1, 3).long().numpy()
batch = Batch(image.numpy(), (image * 3).byte().numpy(), torch.arange(1).numpy(), labels)
executor.train([batch], 1e-3)
pids = processes.gather(os.getpid())
if processes.rank == 1:
    signal.pause() if accident == "silence" else os.kill(os.getpid(), signal.SIGKILL)
# The first step waits for slow starts; from here on, a short timeout is enough.
dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1 if accident == "silence" else 120))
try:
    executor.train([batch], 1e-3)
except PilotageError as error:
    with open(f"{folder}/{processes.rank}.json", "w") as file:
        json.dump(str(error), file)
if processes.rank == 0 and accident == "silence":
    os.kill(pids[1], signal.SIGTERM)
"""


@pytest.fixture
def messages(tmp_path):
    """The messages of three processes, of which the second fails."""

    def run(accident, ending):
        script = tmp_path / "script.py"
        script.write_text(SCRIPT)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(listening.getsockname()[1]), "WORLD_SIZE": "3"}
        known = {**os.environ, **meeting, "OMP_NUM_THREADS": "1"}
        running = [
            subprocess.Popen([sys.executable, str(script), str(tmp_path), accident], env=known | {"RANK": str(rank)})
            for rank in range(3)
        ]
        try:
            assert [process.wait(200) for process in running] == [0, -ending, 0]
        finally:
            for process in running:
                process.kill()
        return {rank: json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 2)}

    return run


@pytest.mark.long
def test_a_process_that_stays_silent_is_named_by_all_others(messages):
    for rank, message in messages("silence", signal.SIGTERM).items():
        assert f"Rank {rank} of 3" in message
        assert "failed in adding up gradients: rank 1 did not take part." in message


@pytest.mark.long
def test_a_process_that_dies_is_named(messages):
    said = messages("death", signal.SIGKILL)
    for rank, message in said.items():
        assert f"Rank {rank} of 3" in message
        assert "failed in adding up gradients: another instance is gone: rank " in message
    assert "gone: rank 1" in said[0]
