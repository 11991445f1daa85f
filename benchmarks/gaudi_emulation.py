"""What it costs to run on the emulated Gaudi: eager steps there, and on the device that computes for it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

from benchmarks.report import Row, Table

LIMIT = {"cpu": 3.0, "cuda": 1.0}
"""How many times the time of the device underneath the emulation may take: the first model here, the last one on CUDA."""

# In a process of its own: the emulated device stays known to torch until the end.
_PROGRAM = """
import json, sys
import torch
import habana_frameworks.torch.core as htcore
from benchmarks.contest import Contender, synchronized, take_turns

beneath, model, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)

def tutorial(device):
    from examples.fashion_mnist.model import GarmentClassifier
    network = GarmentClassifier().train().to(device)
    images, labels = torch.randn(16, 1, 28, 28).to(device), torch.randint(0, 10, (16,)).to(device)
    return network, lambda: network(images, labels)[1], 100

def cosmictagger(device):
    from benchmarks.cosmic_step import Plain
    network, images = Plain().to(device), torch.rand(4, 3, 640, 1024).to(device)
    return network, lambda: sum(plane.square().mean() for plane in network(images)), 10

def contender(device):
    torch.manual_seed(42)
    network, loss_of, steps = {"tutorial": tutorial, "CosmicTagger A21": cosmictagger}[model](device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)

    def round():
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            htcore.mark_step()
            optimizer.step()
            htcore.mark_step()
        synchronized(device)
        return steps

    return Contender(device, round)

contenders = [contender(beneath), contender("hpu")]
take_turns(contenders, rounds)
print(json.dumps([each.rates for each in contenders]))
"""


def measure(device: str, rounds: int) -> Table:
    """Steps per second, one thread; what is underneath and what is emulated take turns."""
    beneath = "cuda" if device == "cuda" else "cpu"
    models = ["tutorial", "CosmicTagger A21"] if beneath == "cuda" else ["tutorial"]
    rows, times, rates = [], {}, {}
    for model in models:
        plain, emulated = rates[model] = _rates(beneath, model, rounds)
        times[model] = statistics.median(plain) / statistics.median(emulated)
        rows += [
            Row(f"{model}, eager on {beneath}", statistics.median(plain), "steps/s", 1.0),
            Row(f"{model}, on hpu emulated by it", statistics.median(emulated), "steps/s", 1 / times[model]),
        ]
    last = models[-1]
    return Table(
        title=f"Emulated Gaudi over {beneath}, training steps",
        command=f"make bench DEVICE={beneath} ARGS='--only gaudi_emulation'",
        rows=rows,
        verdict=f"{last}: {times[last]:.2f} times the time of eager {beneath}; wanted: {LIMIT[beneath]:.1f} times at most.",
        details={"rates": rates},
    )


def _rates(beneath: str, model: str, rounds: int) -> tuple[list[float], list[float]]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, beneath, model, str(rounds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PILOTAGE_HPU_ON": beneath},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    plain, emulated = json.loads(done.stdout.splitlines()[-1])
    return plain, emulated
