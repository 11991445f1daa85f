"""Steps of the tutorial on a busy machine: one other program per core runs all the time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

import pilotage
from benchmarks.baselines import baselines
from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from examples.fashion_mnist.model import GarmentClassifier

SECONDS = 3.0
"""Length of a round: long enough for the thread count to be chosen again."""


def measure(device: str, rounds: int) -> Table:
    """Steps per second in eager PyTorch, with a fixed tier, and with the run's own choice."""
    command = "make bench DEVICE=cpu ARGS='--only busy_machine'"
    if device != "cpu":
        return Table(title="A busy machine", command=command, rows=[], verdict="This benchmark measures CPUs only.")
    cores = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        for _ in range(cores):
            stack.enter_context(_busy_program())
        contenders = [
            Contender(f"eager PyTorch, {torch.get_num_threads()} threads", _for_a_while(_eager())),
            Contender(f"Pilotage, fixed tier, {torch.get_num_threads()} threads", _for_a_while(_ours("graph"))),
            Contender("Pilotage", _for_a_while(_ours(None))),
        ]
        alternate(contenders, min(rounds, 5))
    eager, *_, ours = contenders
    return Table(
        title=f"Tutorial classifier, batch 16, on {cores} cores with {cores} other busy programs",
        command=command,
        rows=[Row(each.name, each.median, "steps/s", each.median / eager.median) for each in contenders],
        verdict=f"{ours.median / eager.median:.1f} times eager PyTorch.",
        details={"rates": {each.name: each.rates for each in contenders}},
    )


@contextmanager
def _busy_program() -> Iterator[None]:
    program = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        program.kill()
        program.wait()


def _data() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.001, momentum=0.9)


def _eager() -> Callable[[], object]:
    (step,) = baselines(GarmentClassifier().train(), _data(), _sgd, "cpu", modes=(), loops=False).values()
    return step


def _ours(tier: str | None) -> Callable[[], object]:
    model, data = GarmentClassifier().train(), _data()
    trainer = pilotage.training(model, _sgd(model.parameters()), backend="cpu", tier=tier)
    return lambda: trainer(*data)


def _for_a_while(step: Callable[[], object]) -> Callable[[], int]:
    def run() -> int:
        end, steps = time.perf_counter() + SECONDS, 0
        while time.perf_counter() < end:
            step()
            steps += 1
        return steps

    return run
