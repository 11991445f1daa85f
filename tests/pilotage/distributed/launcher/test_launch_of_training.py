"""An instance that is killed while all train together takes the job down, at whatever moment."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time

import pytest

SCRIPT = """
import os, sys
import torch
import pilotage
from pilotage.distributed.peers import peers_here

print("pid", peers_here().world.rank, os.getpid(), flush=True)
model = torch.nn.Linear(4, 4)
step = pilotage.training(
    model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), distributed=True, tier="graph", backend="cpu")
for update in range(100_000):
    step(torch.ones(2, 4), torch.zeros(2, 4))
    print("update", update, flush=True)
"""
WITHIN = 20.0
"""Seconds from the kill to the end of the job; most of the time they are less than one."""


def kill_at(start_poprun, left_of, tmp_path, victim: int, update: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    job = start_poprun("--num-instances=2", sys.executable, script)
    pids: dict[int, int] = {}
    for line in job.stdout:
        if found := re.search(r"pid (\d) (\d+)$", line):
            pids[int(found[1])] = int(found[2])
        if len(pids) == 2 and (update < 0 or f"update {update}\n" in line):
            break
    os.kill(pids[victim], signal.SIGKILL)
    killed = time.monotonic()
    _, errors = job.communicate(timeout=200)
    assert time.monotonic() - killed < WITHIN
    assert job.returncode == 128 + signal.SIGKILL, errors
    assert f"Instance {victim} on localhost was the first to fail, by signal SIGKILL. The others were ended." in errors
    assert not left_of(pids.values())


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "update"), [(0, 5), (1, -1)])
def test_a_killed_instance_ends_the_job_with_its_name(start_poprun, left_of, tmp_path, victim, update):
    kill_at(start_poprun, left_of, tmp_path, victim, update)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_instance_ends_the_job_at_any_moment(start_poprun, left_of, tmp_path, seed):
    chance = random.Random(seed)
    kill_at(start_poprun, left_of, tmp_path, chance.randrange(2), chance.choice([-1, 0, chance.randrange(200)]))


RESUMED = """
import os, signal, sys
import torch
import pilotage
from pilotage.data import Loader, Share
from pilotage.distributed.peers import peers_here

folder, victim, moment, updates = sys.argv[1], *map(int, sys.argv[2:])
rank, tries = peers_here().world.rank, int(os.environ["PILOTAGE_RESTART"])
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
samples = torch.utils.data.TensorDataset(torch.randn(80, 4), torch.randint(2, (80,)))
step = pilotage.training(
    model, torch.optim.Adam(model.parameters(), lr=0.02), loss=torch.nn.CrossEntropyLoss(), distributed=True, tier="graph",
    backend="cpu", broadcast_buffers=False, seed=5)

share = Share(process=rank, processes=2)
epochs = pilotage.Epochs(Loader(samples, batch_size=8, shuffle=True, share=share, shuffle_seed=11))
step.compile(*samples[:8])
found = step.restore_checkpoint(folder)
begun = 0 if found is None else found.step
print("begins", begun, flush=True)
if found is not None:
    epochs.resume(found.position)
for number, batch in zip(range(begun, updates), epochs):
    if (rank, tries, number) == (victim, 0, moment):
        os.kill(os.getpid(), signal.SIGKILL)
    step(*batch)
    step.save_checkpoint(folder, number + 1, position=epochs.position())
if rank == 0:
    print("weights", [round(value, 6) for weight in model.parameters() for value in weight.flatten().tolist()], flush=True)
"""


def final_weights(poprun, tmp_path, name: str, victim: int, moment: int) -> tuple[str, str]:
    script = tmp_path / "resumed.py"
    script.write_text(RESUMED)
    words = ("--num-instances=2", "--max-restarts=1", sys.executable, script, tmp_path / name, victim, moment, 12)
    status, out, errors = poprun(*words)
    assert status == 0, errors
    (weights,) = [line for line in out.splitlines() if "weights" in line]
    return weights, out


@pytest.mark.slow
def test_a_restarted_job_reaches_the_weights_of_one_that_was_never_disturbed(poprun, tmp_path):
    undisturbed, _ = final_weights(poprun, tmp_path, "undisturbed", -1, -1)
    disturbed, out = final_weights(poprun, tmp_path, "disturbed", 1, 7)
    assert disturbed == undisturbed
    assert out.count("begins 7") == 2, out


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_restarted_job_reaches_the_same_weights_whenever_it_was_disturbed(poprun, tmp_path, seed):
    chance = random.Random(seed)
    undisturbed, _ = final_weights(poprun, tmp_path, "undisturbed", -1, -1)
    disturbed, out = final_weights(poprun, tmp_path, "disturbed", chance.randrange(2), chance.randrange(12))
    assert disturbed == undisturbed, out
