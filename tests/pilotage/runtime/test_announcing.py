from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import PilotageError
from pilotage.monitoring.announced_programs import read_announcements
from pilotage.monitoring.announcement import Activity, Announcement
from pilotage.runtime.announcing import hardware_of

TRAINING = """
import sys, torch, pilotage
torch.set_num_threads(1)
model = torch.nn.Linear(4, 3)
step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), **{options})
inputs, target = torch.ones(8, 4), torch.zeros(8, 3)
step(inputs, target)
print("stepped", flush=True)
for line in sys.stdin:
    step(inputs, target)
    print("stepped", flush=True)
"""
MONITOR = [sys.executable, "-m", "pilotage", "monitor", "--json"]


@pytest.fixture
def directory(tmp_path, monkeypatch) -> Path:
    """Where the test and its processes announce themselves."""
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PILOTAGE_LOG_LEVEL", "WARNING")
    return tmp_path / "run"


def said(directory: Path) -> list[Announcement]:
    return read_announcements([directory]).programs.get(os.getpid(), [])


def trained(**options) -> pilotage.CompiledModel:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    return pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss(), **options)


def call(step: pilotage.CompiledModel, batch: int = 8) -> None:
    step(torch.ones(batch, 4), torch.zeros(batch, 3))


def test_the_first_call_is_announced_when_it_returns(directory):
    step = trained(device_iterations=4, gradient_accumulation=2, tier="graph")
    call(step)
    (announced,) = said(directory)
    assert announced.activity is Activity.RUNNING
    assert (announced.calls, announced.steps, announced.updates) == (1, 8, 4)
    assert (announced.devices, announced.tier, announced.trains) == (("cpu",), "graph", True)
    assert (announced.instance, announced.instances, announced.job) == (0, 1, None)
    assert announced.steps == sum(step.record.steps.values())


def test_a_program_is_announced_during_its_first_call(directory):
    step = trained()
    step.compile(torch.ones(8, 4), torch.zeros(8, 3))
    (announced,) = said(directory)
    assert announced.activity is Activity.STARTING
    assert announced.rate is None


def test_each_program_is_announced_with_its_replicas_and_its_kind(directory):
    step, infer = trained(replicas=2), pilotage.inference(nn.Linear(4, 3))
    call(step)
    infer(torch.ones(8, 4))
    kinds = {announced.trains: announced.replicas for announced in said(directory)}
    assert kinds == {True: 2, False: 1}


def test_a_detached_program_is_not_announced_until_its_next_call(directory):
    step = trained()
    for leave in (step.detach, step.destroy):
        call(step)
        assert len(said(directory)) == 1
        leave()
        assert said(directory) == []


def test_a_deleted_program_is_not_announced(directory):
    step = trained()
    call(step)
    del step
    gc.collect()
    assert not list(directory.iterdir())


def test_a_module_that_cannot_be_captured_is_not_announced(directory):
    class Undecided(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    infer = pilotage.inference(Undecided())
    with pytest.raises(PilotageError):
        infer(torch.ones(2))
    assert said(directory) == []


def test_training_continues_if_it_cannot_be_announced(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path / "file/run"))
    announced = trained()
    call(announced)
    monkeypatch.setenv("PILOTAGE_RUN_DIR", "off")
    silent = trained()
    call(silent)
    assert torch.equal(announced.module.weight, silent.module.weight)


def test_inference_in_a_job_is_announced_with_its_instance(directory, monkeypatch):
    variables = {
        "POPDIST_NUM_TOTAL_REPLICAS": "4",
        "POPDIST_NUM_LOCAL_REPLICAS": "2",
        "POPDIST_REPLICA_INDEX_OFFSET": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    infer = pilotage.inference(nn.Linear(4, 3))
    infer(torch.ones(8, 4))
    (announced,) = said(directory)
    assert (announced.instance, announced.instances, announced.job) == (1, 2, "poprun at 127.0.0.1:29500")


def test_invalid_launcher_variables_do_not_stop_inference(directory, monkeypatch):
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    infer = pilotage.inference(nn.Linear(4, 3))
    infer(torch.ones(8, 4))
    assert [announced.instances for announced in said(directory)] == [1]


def test_the_cpu_is_announced_without_an_identity():
    for device in ("cpu", "hpu (Gaudi, emulated on the CPU)", "rubbish", ""):
        assert hardware_of(device) == ""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")
def test_a_card_is_announced_with_its_identity():
    assert hardware_of("cuda:0")
    assert hardware_of("cuda:0") == str(torch.cuda.get_device_properties(0).uuid)


@pytest.fixture
def training(directory):
    """Start a process that trains: one step at once, and one more for each line that it is sent."""
    started = []

    def start(**options) -> subprocess.Popen:
        program = TRAINING.format(options=options)
        child = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(child)
        assert child.stdout.readline() == "stepped\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def monitored() -> list[dict]:
    ran = subprocess.run(MONITOR, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["processes"]


@pytest.mark.slow
def test_training_is_shown_from_its_first_step_until_it_is_killed(training, directory):
    child = training(device_iterations=2, tier="graph")
    (process,) = monitored()
    assert (process["pid"], process["devices"]) == (child.pid, ["cpu"])
    (program,) = process["programs"]
    assert (program["steps"], program["updates"], program["tier"]) == (2, 2, "graph")
    # On a busy machine it may have waited long for its next line.
    assert program["activity"] in ("running", "idle")

    steps, announced = 2, None
    while announced is None or announced.steps == 2:
        child.stdin.write("on\n")
        child.stdin.flush()
        assert child.stdout.readline() == "stepped\n"
        steps += 2
        (announced,) = read_announcements([directory]).programs[child.pid]
    assert announced.steps == steps

    child.send_signal(signal.SIGKILL)
    # A zombie: its parent has not waited for it yet.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert monitored() == []
    assert not list(directory.iterdir())


@pytest.mark.slow
def test_the_instances_of_a_job_are_shown_as_one(directory, tmp_path):
    script = tmp_path / "train.py"
    forever = "while True:\n    step(inputs, target)\n"
    script.write_text(TRAINING.format(options={"distributed": True, "replicas": 2}) + forever)
    command = [sys.executable, "-m", "pilotage", "run", "--num-instances", "2", sys.executable, str(script)]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(2):
            assert "stepped" in job.stdout.readline()
        processes = monitored()
        places = [(p["instance"], p["instances"], p["replicas"]) for each in processes for p in each["programs"]]
        assert places == [(0, 2, 2), (1, 2, 2)]
        (name,) = {p["job"] for each in processes for p in each["programs"]}
        assert name.startswith("poprun at 127.0.0.1:")
    finally:
        job.terminate()
        job.communicate()
