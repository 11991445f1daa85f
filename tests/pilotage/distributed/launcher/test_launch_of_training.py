"""An instance that is killed while all train together takes the job down, at whatever moment."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from pathlib import Path

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


def kill_at(start_poprun, tmp_path, victim: int, update: int) -> None:
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
    _, errors = job.communicate(timeout=60)
    assert time.monotonic() - killed < WITHIN
    assert job.returncode == 128 + signal.SIGKILL, errors
    assert f"Instance {victim} on localhost was the first to fail, by signal SIGKILL. The others were ended." in errors
    assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "update"), [(0, 5), (1, -1)])
def test_a_killed_instance_ends_the_job_with_its_name(start_poprun, tmp_path, victim, update):
    kill_at(start_poprun, tmp_path, victim, update)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_instance_ends_the_job_at_any_moment(start_poprun, tmp_path, seed):
    chance = random.Random(seed)
    kill_at(start_poprun, tmp_path, chance.randrange(2), chance.choice([-1, 0, chance.randrange(200)]))
