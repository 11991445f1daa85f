"""Memory on the device with recomputation, and with tensors offloaded to the host.

Without a card, the card is emulated: the CPU computes, and allocations on the device are counted. The counts do not
depend on the load of the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.report import Row, Table

WAYS = ("", "recomputation", "activations", "optimizer", "recomputation optimizer", "activations optimizer")
"""How each run saves memory."""

_PROGRAM = """
import json, sys
import torch
from torch import nn
from torch.nn import functional
import poptorch
device, way = sys.argv[1], sys.argv[2].split()
WIDTH, LENGTH, LAYERS = 128, 64, 12

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = lambda: nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(layer() for _ in range(LAYERS))
    def forward(self, x):
        y = x
        for layer in self.layers:
            y = poptorch.recomputationCheckpoint(layer(y))
        return functional.mse_loss(y, torch.zeros_like(y))

torch.manual_seed(0)
poptorch.setLogLevel("ERR")
module = Encoder()
options = poptorch.Options().runOn(device, tier="graph").showCompilationProgressBar(False)
off_chip = poptorch.TensorLocationSettings().useOnChipStorage(False)
if "recomputation" not in way:
    options._Popart.set("autoRecomputation", 0)
if "activations" in way:
    options.TensorLocations.setActivationLocation(off_chip)
if "optimizer" in way:
    options.TensorLocations.setOptimizerLocation(off_chip)
model = poptorch.trainingModel(module, options, poptorch.optim.AdamW(module.parameters(), lr=1e-3))
x = torch.randn(16, LENGTH, WIDTH)
losses = [float(model(x)) for _ in range(2)]
memory = torch.cuda if device == "cuda" else torch.hpu
held = memory.memory_allocated()
memory.reset_peak_memory_stats()
losses.append(float(model(x)))
print(json.dumps({"held": held, "peak": memory.max_memory_allocated(), "losses": losses}))
"""


def measure(device: str, rounds: int) -> Table:
    """Memory between calls and at the peak of a call, for each way of saving it."""
    card = "cuda" if device == "cuda" else "hpu"
    found = {way: _run(card, way) for way in WAYS}
    plain = found[""]
    names = {way: way.replace(" ", " and ") or "nothing" for way in WAYS}
    rows = [
        *(
            Row(f"peak, {names[way]}", each["peak"] / 2**20, "MiB", plain["peak"] / each["peak"])
            for way, each in found.items()
        ),
        *(
            Row(f"between calls, {names[way]}", each["held"] / 2**20, "MiB", plain["held"] / each["held"])
            for way, each in found.items()
        ),
    ]
    same = all(each["losses"] == plain["losses"] for each in found.values())
    place = "the card" if card == "cuda" else "an emulated card"
    least = min(WAYS, key=lambda way: found[way]["peak"])
    return Table(
        title=f"Memory of {place}: encoder of 12 layers, batch 16 x 64 x 128, AdamW",
        command=f"make bench DEVICE={device} ARGS='--only offloading'",
        rows=rows,
        verdict=f"Losses are {'equal to the last bit' if same else 'DIFFERENT'}. Recomputation needs "
        f"{found['recomputation']['peak'] / plain['peak']:.2f} of the memory, "
        f"{names[least]} {found[least]['peak'] / plain['peak']:.2f}.",
    )


def _run(card: str, way: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PILOTAGE_CACHE_DIR": "off"}
    command = [sys.executable, "-c", _PROGRAM, card, way]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
