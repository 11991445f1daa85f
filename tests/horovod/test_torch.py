from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import horovod.torch as hvd

LAUNCHER_VARIABLES = ("POPDIST_NUM_TOTAL_REPLICAS", "RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID", "MASTER_PORT")


@pytest.fixture(autouse=True)
def without_a_launcher(monkeypatch):
    for name in LAUNCHER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    hvd.shutdown()


@pytest.fixture
def alone():
    hvd.init()


def test_ranks_need_init():
    assert not hvd.is_initialized()
    with pytest.raises(ValueError, match=r"Horovod has not been initialized; use hvd\.init\(\)"):
        hvd.rank()


def test_a_single_instance_is_the_whole_world(alone):
    hvd.init()
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    assert not hvd.mpi_enabled()
    assert not hvd.mpi_built()
    assert not hvd.mpi_threads_supported()
    assert hvd.gloo_enabled()
    assert hvd.nccl_built() == 0


def test_a_single_instance_keeps_its_values(alone):
    tensor = torch.tensor([1.0, 2.0])
    assert hvd.allreduce(tensor).tolist() == [1.0, 2.0]
    assert hvd.allreduce(tensor, prescale_factor=2.0, postscale_factor=3.0).tolist() == [6.0, 12.0]
    assert hvd.allreduce(tensor, compression=hvd.Compression.fp16).dtype == torch.float32
    assert hvd.allgather(tensor).tolist() == [1.0, 2.0]
    assert hvd.broadcast(tensor, 0).tolist() == [1.0, 2.0]
    assert hvd.broadcast_object({"a": 1}) == {"a": 1}
    assert hvd.synchronize(hvd.allreduce_async(tensor)).tolist() == [1.0, 2.0]
    assert hvd.poll(hvd.allgather_async(tensor))
    hvd.barrier()
    assert tensor.tolist() == [1.0, 2.0]


def test_arguments_that_contradict_each_other_are_refused(alone):
    with pytest.raises(ValueError, match="supersedes average"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)
    with pytest.raises(ValueError, match=r"Choose hvd\.Average"):
        hvd.allreduce(torch.ones(1), op="sum")
    with pytest.raises(ValueError, match=r"root_rank is 3\. It must be between 0 and 0"):
        hvd.broadcast(torch.ones(1), 3)


def test_what_needs_horovod_itself_raises_with_the_reason(alone):
    with pytest.raises(AttributeError, match=r"pass the plain optimizer to poptorch\.trainingModel"):
        _ = hvd.DistributedOptimizer
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hvd.nonsense
    with pytest.raises(NotImplementedError, match="same collective calls"):
        hvd.join()
    with pytest.raises(NotImplementedError, match=r"give it tensor\.detach\(\)"):
        hvd.allgather(torch.ones(1, requires_grad=True))
    with pytest.raises(NotImplementedError, match="passes no gradients"):
        hvd.allreduce(torch.ones(1, requires_grad=True), op=hvd.Max).backward()


PROGRAM = """
import json, sys, warnings
from pathlib import Path
warnings.simplefilter("error")
import torch
import horovod.torch as hvd

hvd.init()
mine = hvd.rank() + 1
tensor = torch.full((2,), float(mine), requires_grad=True)
hvd.allreduce(tensor).sum().backward()
model = torch.nn.Linear(2, 1)
torch.nn.init.constant_(model.weight, mine)
hvd.broadcast_parameters(model.state_dict(), root_rank=1)
optimizer = torch.optim.SGD(model.parameters(), lr=mine, momentum=0.5)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
found = {
    "ranks": [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_size()],
    "average": hvd.allreduce(torch.tensor(float(mine))).item(),
    "whole": hvd.allreduce(torch.tensor(3 * mine - 1)).item(),
    "sum": [each.item() for each in hvd.grouped_allreduce([torch.tensor(mine), torch.tensor(10)], op=hvd.Sum)],
    "least": hvd.allreduce(torch.tensor(mine), op=hvd.Min).item(),
    "most": hvd.allreduce_(torch.tensor(mine), op=hvd.Max).item(),
    "product": hvd.allreduce(torch.tensor(mine + 1), op=hvd.Product).item(),
    "gathered": hvd.allgather(torch.full((mine, 2), mine)).tolist(),
    "objects": hvd.allgather_object({"rank": hvd.rank()}),
    "object": hvd.broadcast_object([mine], root_rank=1),
    "gradient": tensor.grad.tolist(),
    "weight": model.weight.tolist(),
    "rate": optimizer.param_groups[0]["lr"],
}
Path(sys.argv[1], f"{hvd.rank()}.json").write_text(json.dumps(found))
hvd.shutdown()
"""


@pytest.mark.slow
def test_two_instances_reduce_gather_and_broadcast(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "pilotage.cli.run.poprun", "--num-instances=2", sys.executable, str(script)]
    ran = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for rank in range(2):
        assert json.loads(Path(tmp_path, f"{rank}.json").read_text()) == {
            "ranks": [rank, 2, rank, 2, 1],
            "average": 1.5,
            "whole": 3,
            "sum": [3, 20],
            "least": 1,
            "most": 2,
            "product": 6,
            "gathered": [[1, 1], [2, 2], [2, 2]],
            "objects": [{"rank": 0}, {"rank": 1}],
            "object": [2],
            "gradient": [1.0, 1.0],
            "weight": [[2.0, 2.0]],
            "rate": 1,
        }


def test_parameters_of_a_single_instance_stay(alone):
    layer = nn.Linear(2, 1)
    before = layer.weight.clone()
    hvd.broadcast_parameters(layer.named_parameters(), root_rank=0)
    assert torch.equal(layer.weight, before)
