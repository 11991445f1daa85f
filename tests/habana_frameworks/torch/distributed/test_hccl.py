"""Processes with one emulated card each, and what their launcher says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import os, sys
import torch
import torch.distributed as dist
import habana_frameworks.torch.core as htcore
import habana_frameworks.torch.distributed.hccl as hccl

world_size, rank, local_rank = hccl.initialize_distributed_hpu()
assert (world_size, rank, os.environ["ID"], os.environ["HLS_MODULE_ID"]) == (2, local_rank, str(rank), str(rank))
torch.hpu.set_device(local_rank)
dist.init_process_group("hccl")
assert dist.get_backend() == "hccl"

here = torch.full((3,), rank + 1.0, device="hpu")
dist.all_reduce(here)
assert here.is_hpu and here.tolist() == [3, 3, 3]
work = dist.all_reduce(here, op=dist.ReduceOp.MAX, async_op=True)
work.wait()
places = [torch.zeros(1, device="hpu") for _ in range(2)]
dist.all_gather(places, torch.full((1,), float(rank), device="hpu"))
assert [place.item() for place in places] == [0, 1]
dist.broadcast(here, 0)
dist.barrier()

def train(device):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(device)
    parallel = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(3):
        optimizer.zero_grad()
        parallel(torch.randn(5, 4).to(device)).pow(2).mean().backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
    return [each.detach().cpu() for each in network.parameters()]

assert all(torch.equal(one, other) for one, other in zip(train("cpu"), train("hpu")))
dist.destroy_process_group()
open(f"agrees-{rank}", "w").close()
"""


def test_collectives_and_data_parallel_training_give_the_results_of_gloo(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert sorted(file.name for file in tmp_path.glob("agrees-*")) == ["agrees-0", "agrees-1"]
    assert ran.stderr.count("No Gaudi found") == 1  # once per job


def test_the_launchers_variables_are_read_and_exported(alone):
    def program():
        import os

        import pytest

        import habana_frameworks.torch as ht

        initialize = ht.distributed.hccl.initialize_distributed_hpu
        assert initialize() == (1, -1, -1)
        assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("localhost", "12345")
        assert not {"RANK", "ID", "HLS_MODULE_ID"} & os.environ.keys()
        with pytest.raises(AssertionError, match="one emulated Gaudi card"):
            ht.hpu.set_device(3)

        # As under mpirun: three variables of Open MPI and nothing else.
        mpi = {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
        os.environ |= {**mpi, "HABANA_VISIBLE_MODULES": "2,6", "MASTER_PORT": "23456"}
        assert initialize() == (8, 5, 1)
        exported = [os.environ[name] for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "ID", "HLS_MODULE_ID")]
        assert exported == ["8", "5", "1", "5", "6"]
        assert os.environ["MASTER_PORT"] == "23456"
        ht.hpu.set_device(1)
        assert ht.hpu.current_device() == 0

        assert initialize(world_size=4, rank=2, local_rank=0) == (4, 2, 0)
        assert initialize() == (4, 2, 0)

    alone(program)
