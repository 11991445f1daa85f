"""Stages as processes of poprun: which one prints, and what happens when one fails or is killed."""

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
from pathlib import Path
import torch
import pilotage
from pilotage.distributed.pipeline_group import pipeline_group_here

folder, failing, moment, order = Path(sys.argv[1]), *map(int, sys.argv[2:4]), sys.argv[4]
stage = pipeline_group_here().stage
print("says", stage, flush=True)

class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            pilotage.enter_stage(number)
            x = torch.tanh(layer(x))
        return x

model = Layers()
step = pilotage.training(
    model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), distributed=True,
    tier="graph", backend="cpu",
    gradient_accumulation=4, pipeline=order)
(folder / f"{stage}.pid").write_text(str(os.getpid()))
for update in range(moment if failing < 0 else 100_000):
    if (stage, update) == (failing, moment):
        raise ValueError("this stage has had enough")
    step(torch.ones(4, 4), torch.zeros(4, 4))
    print("update", update, flush=True)
print("weights", len(model.state_dict()), flush=True)
"""
WITHIN = 20.0
"""Seconds from the kill to the end of the job; most of the time they are less than one."""


def words(tmp_path, *arguments):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return ("--ipus-per-replica=3", sys.executable, script, tmp_path, *arguments)


def processes(tmp_path):
    return [int(path.read_text()) for path in tmp_path.glob("*.pid")]


@pytest.mark.long
def test_only_the_first_stage_prints_and_failures_of_others_are_reported(poprun, left_of, tmp_path):
    status, out, errors = poprun(*words(tmp_path, 2, 1, "gpipe"))
    assert status == 1
    assert out.splitlines() == ["[1,0]<stdout>:says 0", "[1,0]<stdout>:update 0"]
    # Its neighbours notice at once, and may end first.
    assert re.search(r"Instance 0, stage 2 on localhost (was the first to fail|failed too), with status 1\.", errors)
    assert "ValueError: this stage has had enough" in errors
    assert not left_of(processes(tmp_path))


def kill_at(start_poprun, left_of, tmp_path, victim: int, update: int, order: str) -> None:
    job = start_poprun(*words(tmp_path, 3, 0, order))
    for line in job.stdout:
        assert line.startswith("[1,0]<stdout>:update") or line == "[1,0]<stdout>:says 0\n"
        if f"update {update}\n" in line:
            break
    os.kill(int((tmp_path / f"{victim}.pid").read_text()), signal.SIGKILL)
    killed = time.monotonic()
    _, errors = job.communicate(timeout=200)
    assert time.monotonic() - killed < WITHIN
    assert job.returncode == 128 + signal.SIGKILL, errors
    assert f"Instance 0, stage {victim} on localhost was the first to fail, by signal SIGKILL." in errors
    pids = processes(tmp_path)
    assert len(pids) == 3
    assert not left_of(pids)


@pytest.mark.slow
def test_only_the_first_stage_prints_and_a_killed_stage_ends_the_job(start_poprun, left_of, tmp_path):
    kill_at(start_poprun, left_of, tmp_path, 1, 3, "1f1b")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_a_killed_stage_ends_the_job_at_any_moment(start_poprun, left_of, tmp_path, seed):
    chance = random.Random(seed)
    kill_at(start_poprun, left_of, tmp_path, seed % 3, chance.randrange(60), ("1f1b", "gpipe", "sharded")[seed % 4 % 3])
