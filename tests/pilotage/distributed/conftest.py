"""Worlds of real processes, with gloo."""

from __future__ import annotations

import multiprocessing
import runpy
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pilotage.distributed.environments.poprun import poprun_variables
from pilotage.distributed.world import World

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "pilotage.door", "torch.fx.experimental.symbolic_shapes", "torch._decomp"])


class Instances:
    """The processes of one world, and their results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[Any] = []

    def start(self, function: Callable[..., Any], size: int, *, stages: int = 1, **arguments: Any) -> None:
        file = sys.modules[function.__module__].__file__
        port = free_port()
        self.folder.mkdir()
        for number in range(size * stages):
            world = World(
                rank=number // stages,
                size=size,
                local_rank=number // stages,
                stages_per_replica=stages,
                stage=number % stages if stages > 1 else None,
                address="127.0.0.1",
                port=port,
            )
            environment = poprun_variables(world) | {"PILOTAGE_BACKEND": "cpu"}
            given = {
                "environment": environment,
                "file": file,
                "function": function.__name__,
                "arguments": arguments,
                "answer": str(self.answer(number)),
            }
            script = str(Path(__file__).with_name("instance.py"))
            process = CONTEXT.Process(target=runpy.run_path, args=(script, {"given": given}, "__instance__"))
            process.start()
            self.processes.append(process)

    def answer(self, rank: int) -> Path:
        return self.folder / f"{rank}.pt"

    def log(self, rank: int) -> str:
        return self.answer(rank).with_suffix(".log").read_text()

    def statuses(self, seconds: float = 120) -> list[int | None]:
        for process in self.processes:
            process.join(seconds)
        return [process.exitcode for process in self.processes]

    def answers(self) -> list[Any]:
        statuses = self.statuses()
        logs = [self.log(rank) for rank in range(len(statuses))]
        assert statuses == [0] * len(statuses), "\n".join(logs)
        return [torch.load(self.answer(rank)) for rank in range(len(statuses))]

    def end(self) -> None:
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port: int = place.getsockname()[1]
        return port


@pytest.fixture
def instances(tmp_path):
    """Starts worlds; `world(function, size, **arguments)` returns the function's result in each instance."""
    started: list[Instances] = []

    def begin() -> Instances:
        started.append(Instances(tmp_path / f"world{len(started)}"))
        return started[-1]

    yield begin
    for each in started:
        each.end()


@pytest.fixture
def world(instances):
    def run(function: Callable[..., Any], size: int, **arguments: Any) -> list[Any]:
        begun = instances()
        begun.start(function, size, **arguments)
        return begun.answers()

    return run


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory):
    """The same for several tests of a file that share one run."""
    begun = Instances(tmp_path_factory.mktemp("shared") / "world")

    def run(function: Callable[..., Any], size: int, **arguments: Any) -> list[Any]:
        begun.start(function, size, **arguments)
        return begun.answers()

    yield run
    begun.end()
