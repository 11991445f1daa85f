"""Exchanges between processes."""

import json
import multiprocessing
import runpy
import socket
from pathlib import Path

import pytest
import torch

from cosmictagger.configuration.run import Run
from cosmictagger.devices.cpu import CpuDevice
from cosmictagger.processes.process_group import Processes

SCRIPT = """
import json, os, torch
os.environ.update(given)
from cosmictagger.configuration.run import Run
from cosmictagger.devices.cpu import CpuDevice
processes = CpuDevice().join(Run(distributed=True))
rank = processes.rank
answer = (
    processes.mean(torch.tensor([float(rank), 4.0])).tolist(),
    processes.gather(f"process {rank}"),
    processes.broadcast({"from": rank}),
    (processes.writes, processes.is_distributed, processes.backend),
)
norm = torch.nn.BatchNorm1d(2)
norm.running_mean.fill_(rank + 1)
with processes.shared_buffers(norm):
    lent = norm.running_mean.tolist()
gathered = [part["running_mean"].tolist() for part in processes.gather_tensors(dict(norm.named_buffers()))]
answer = (*answer, lent, norm.running_mean.tolist(), gathered)
processes.leave()
open(f"{folder}/{rank}.json", "w").write(json.dumps(answer))
"""


def test_one_process_gets_its_own_values_back():
    processes = CpuDevice().join(Run(distributed=False))
    assert processes == Processes()
    assert processes.mean(torch.ones(2)).tolist() == [1, 1]
    assert processes.gather("x") == ["x"]
    assert processes.broadcast("x") == "x"
    assert processes.writes
    processes.leave()


@pytest.mark.slow
def test_two_processes_share_numbers_and_decisions(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    running = []
    for rank in range(2):
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        running.append(
            context.Process(target=runpy.run_path, args=(str(script), {"given": variables, "folder": str(tmp_path)}))
        )
        running[-1].start()
    for process in running:
        process.join()
    for rank in range(2):
        *answers, lent, own, gathered = json.loads(Path(tmp_path, f"{rank}.json").read_text())
        mean, everybody, first, (writes, shares, backend) = answers
        assert mean == [0.5, 4.0]
        assert everybody == ["process 0", "process 1"]
        assert first == {"from": 0}
        assert (writes, shares, backend) == (rank == 0, True, "gloo")
        assert (lent, own) == ([1.0, 1.0], [rank + 1.0] * 2)
        assert gathered == [[1.0, 1.0], [2.0, 2.0]]
