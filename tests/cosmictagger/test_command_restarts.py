"""Jobs that resume after an instance was killed, restarted by a launcher or by hand."""

import csv
import os
import re
import signal
import time
from pathlib import Path

import pytest
import torch

WORDS = (
    "run.id=x",
    "network=a21",
    "network.depth=2",
    "network.n_initial_filters=4",
    "network.bottleneck_deepest=8",
    "network.blocks_deepest_layer=1",
    "data.downsample=5",
    "data.events=16",
    "data.aux_events=8",
    "data.seed=3",
    "data.workers=1",
    "framework.seed=5",
    "run.saver=false",
    "run.aux_iterations=3",
    "mode.checkpoint_iteration=2",
)
STEPS = 40


def losses(folder):
    tables = {}
    for kind in ("train", "test"):
        with (folder / f"{kind}_metrics.csv").open() as file:
            tables |= {(kind, int(row["step"])): float(row["loss"]) for row in csv.DictReader(file)}
    return tables


def tensors_of(folder, step, instances=2):
    """Every tensor of every instance in the checkpoint of a step."""
    place = folder / "checkpoints"
    if (place / f"model-{step}-0.ckpt").is_file():
        return [torch.load(place / f"model-{step}-{number}.ckpt")["state_dict"] for number in range(instances)]
    state = torch.load(place / f"model-{step}.ckpt")
    return [{**state["state_dict"], **own} for own in state["statistics"]]


def unequal(some, others):
    return [name for name, tensor in some.items() if not torch.equal(tensor, others[name])]


def process_of(folder, variable, value):
    """The PID of the process with this number that trains into a folder."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words, known = (place / "cmdline").read_bytes().split(b"\0"), (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_launcher = any(b"poprun" in word or b"distributed.run" in word for word in words)
        if f"output_dir={folder}".encode() in words and f"{variable}={value}".encode() in known and not is_launcher:
            return int(place.name)
    return None


def kill_after(started, folder, pattern, variable, value):
    """Kill one process as soon as there is a checkpoint."""
    while not list((folder / "checkpoints").glob(pattern)):
        assert any(process.poll() is None for process in started.processes), started.said()
        time.sleep(0.02)
    found = process_of(folder, variable, value)
    assert found is not None, started.said()
    os.kill(found, signal.SIGKILL)


ROUTES = {
    "poprun": ("IPU", "model-*-1.ckpt", "POPDIST_REPLICA_INDEX_OFFSET"),
    "torchrun": ("CPU", "model-*.ckpt", "RANK"),
}


@pytest.mark.timeout(1500)
@pytest.mark.long
@pytest.mark.parametrize(("by", "buffers"), [("poprun", "own"), ("torchrun", "own"), ("torchrun", "shared")])
def test_a_restarted_job_ends_like_an_uninterrupted_one(start, tmp_path, few_events, by, buffers):
    place, pattern, variable = ROUTES[by]
    shared = () if place == "IPU" else ("run.distributed=true", f"run.broadcast_buffers={buffers == 'shared'}")
    given = (
        *WORDS,
        *shared,
        f"run.compute_mode={place}",
        "data=generated",
        f"data.data_directory={few_events}",
        f"run.iterations={STEPS}",
    )
    codes, said = start(*given, f"output_dir={tmp_path / 'whole'}", by=by, instances=2).finish()
    assert codes == [0], said
    killed = start(*given, f"output_dir={tmp_path / 'killed'}", by=by, instances=2)
    kill_after(killed, tmp_path / "killed", pattern, variable, 1)
    codes, said = killed.finish()
    assert codes == [0], said
    found = re.search(r"resumed at step (\d+), (\d+) steps to go", said)
    assert int(found[1]) + int(found[2]) == STEPS
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")
    expected, found = (tensors_of(tmp_path / run, STEPS) for run in ("whole", "killed"))
    assert [unequal(*pair) for pair in zip(expected, found, strict=True)] == [[], []]
    # Each instance has its own statistics; otherwise the test would prove nothing.
    assert buffers == "shared" or any("running" in name for name in unequal(*expected))


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_eight_gaudis_resume_after_one_was_killed(start, tmp_path, few_events):
    words = (*WORDS, "run.compute_mode=HPU", "run.distributed=true", "run.minibatch_size=8", "run.iterations=16")
    given = (*words, "data=generated", f"data.data_directory={few_events}")
    codes, said = start(*given, f"output_dir={tmp_path / 'whole'}", by="mpirun", instances=8).finish()
    assert codes == [0] * 8, said
    killed = start(*given, f"output_dir={tmp_path / 'killed'}", by="mpirun", instances=8)
    kill_after(killed, tmp_path / "killed", "model-*.ckpt", "OMPI_COMM_WORLD_RANK", 5)
    codes, said = killed.finish()
    assert codes[5] == -signal.SIGKILL
    assert all(codes), said
    codes, said = start(*given, f"output_dir={tmp_path / 'killed'}", by="mpirun", instances=8).finish()
    assert codes == [0] * 8, said
    assert "Resumed from" in said
    expected, found = losses(tmp_path / "whole"), losses(tmp_path / "killed")
    assert {step: found[step] for step in expected} == expected
