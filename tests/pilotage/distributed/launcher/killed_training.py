"""A training to be killed: every instance records its process, and the samples of each update before making it.

    killed_training.py FOLDER UPDATES HELD

With HELD, the first attempt makes only that many updates and then waits to be killed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn

import pilotage
from pilotage.data import Loader, Shard
from pilotage.distributed.peers import peers_here

folder, updates, held = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
world, tries = peers_here().world, int(os.environ["PILOTAGE_RESTART"])
notes = (folder / f"notes-{tries}-{world.rank}").open("w", buffering=1)


def note(*words: object) -> None:
    """Write to the file, which outlives the process, and to standard output."""
    print(*words, file=notes)
    print("note", world.rank, *words, flush=True)


note("process", os.getpid())
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
samples = torch.utils.data.TensorDataset(torch.randn(80, 4), torch.randint(2, (80,)), torch.arange(80))
step = pilotage.training(
    model,
    torch.optim.Adam(model.parameters(), lr=0.02),
    loss=nn.CrossEntropyLoss(),
    distributed=True,
    tier="graph",
    backend="cpu",
    broadcast_buffers=False,
    seed=5,
)
shard = Shard(process=world.rank, processes=world.size)
epochs = pilotage.Epochs(Loader(samples, batch_size=16 // world.size, shuffle=True, shard=shard, shuffle_seed=11))
step.compile(*samples[: 16 // world.size][:2])
found = step.restore_checkpoint(folder / "checkpoints")
begun = 0 if found is None else found.step
if found is not None:
    epochs.resume(found.position)
note("begins", begun)
for number, (inputs, targets, indices) in zip(range(begun, updates), epochs, strict=False):
    if held and tries == 0 and number == held:
        note("waits")
        signal.pause()
    note("update", number, *indices.tolist())
    step(inputs, targets)
    note("saves", number)
    step.save_checkpoint(folder / "checkpoints", number + 1, position=epochs.position())
torch.save(model.state_dict(), folder / f"weights-{world.rank}.pt")
note("ends")
