"""Two processes with one emulated card each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
import torch
import torch.distributed as dist
import habana_frameworks.torch.core as htcore
import habana_frameworks.torch.distributed.hccl as hccl

world_size, rank, local_rank = hccl.initialize_distributed_hpu()
assert (world_size, rank, os.environ["ID"]) == (2, local_rank, str(local_rank))
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


@pytest.mark.slow
def test_collectives_and_data_parallel_training_give_the_results_of_gloo(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert sorted(file.name for file in tmp_path.glob("agrees-*")) == ["agrees-0", "agrees-1"]


@pytest.mark.slow
def test_a_single_process_is_a_world_of_one(alone):
    def program():
        import habana_frameworks.torch.distributed.hccl as hccl

        assert hccl.initialize_distributed_hpu() == (1, 0, 0)

    alone(program)
