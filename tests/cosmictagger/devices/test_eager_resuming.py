"""Training with DistributedDataParallel that resumes from a state."""

import json
import os
import socket
import subprocess
import sys

import pytest

SIZE = 3
"""Two values have the same sum in either order, so at least three processes are needed."""

SCRIPT = """
import json, sys
from dataclasses import replace
import torch
from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.mode import Train
from cosmictagger.data.events import Batch
from cosmictagger.devices.choosing import device_for

run = Run(id="x", compute_mode=ComputeMode.CPU, distributed=True, broadcast_buffers=False)
small = replace(A21, depth=1, n_initial_filters=4, bottleneck_deepest=4, blocks_deepest_layer=1)
config = Configuration(run=run, mode=Train(), network=small)
device = device_for(config)
processes = device.join(run)
torch.manual_seed(0)

def train(executor, step):
    image = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(10 * step + processes.rank))
    labels = torch.zeros(1, 3).long().numpy()
    batch = Batch(image.numpy(), (image * 3).byte().numpy(), torch.arange(1).numpy(), labels)
    return executor.train([batch], 1e-3).loss

whole, resumed = device.executor(config, processes), device.executor(config, processes)
for step in (0, 1):
    train(whole, step)
resumed.restore(whole.state())
losses = [[train(executor, step) for step in (2, 3)] for executor in (whole, resumed)]
expected, found = whole.state(), resumed.state()
unequal = [name for name, each in expected["state_dict"].items() if not torch.equal(each, found["state_dict"][name])]
for number, slots in expected["optimizer"]["state"].items():
    others = found["optimizer"]["state"][number]
    unequal += [f"{slot} of {number}" for slot, each in slots.items() if not torch.equal(each, others[slot])]
own = whole.state()["state_dict"]["initial_convolution.norm.running_mean"].tolist()
processes.leave()
with open(f"{sys.argv[1]}/{processes.rank}.json", "w") as file:
    json.dump({"losses": losses, "unequal": unequal, "statistics": own}, file)
"""


@pytest.mark.slow
def test_a_resumed_executor_adds_gradients_in_the_order_of_an_unbroken_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(listening.getsockname()[1]), "WORLD_SIZE": str(SIZE)}
    known = {**os.environ, **meeting, "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen([sys.executable, str(script), str(tmp_path)], env=known | {"RANK": str(rank)})
        for rank in range(SIZE)
    ]
    try:
        assert [process.wait(400) for process in running] == [0] * SIZE
    finally:
        for process in running:
            process.kill()
    results = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(SIZE)]
    for each in results:
        assert each["unequal"] == []
        assert each["losses"][0] == each["losses"][1]
    # Each process has its own statistics; otherwise the test would not show that they are kept.
    assert results[0]["statistics"] != results[1]["statistics"]
