"""A machine that others use as well: the tutorial's steps beside as many programs that never rest as there are cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

import pilotage
from benchmarks.contest import Contender, take_turns
from benchmarks.peers import peers
from benchmarks.report import Row, Table
from examples.fashion_mnist.model import GarmentClassifier

SECONDS = 3.0
"""Of a round: long enough for the number of threads to be looked for again."""


def measure(device: str, rounds: int) -> Table:
    """Steps per second in eager PyTorch, with a tier that is pinned, and as a run chooses for itself."""
    command = "make bench DEVICE=cpu ARGS='--only busy'"
    if device != "cpu":
        return Table(title="A busy machine", command=command, rows=[], verdict="This is about processors.")
    cores = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        for _ in range(cores):
            stack.enter_context(_program_that_never_rests())
        contenders = [
            Contender(f"eager PyTorch, {torch.get_num_threads()} threads", _for_a_while(_eager())),
            Contender(f"Pilotage, pinned tier, {torch.get_num_threads()} threads", _for_a_while(_ours("graph"))),
            Contender("Pilotage", _for_a_while(_ours(None))),
        ]
        take_turns(contenders, min(rounds, 5))
    eager, *_, ours = contenders
    return Table(
        title=f"Tutorial classifier, batch 16, on {cores} cores that {cores} other programs want all of the time",
        command=command,
        rows=[Row(each.name, each.median, "steps/s", each.median / eager.median) for each in contenders],
        verdict=f"{ours.median / eager.median:.1f} times eager PyTorch.",
        details={"rates": {each.name: each.rates for each in contenders}},
    )


@contextmanager
def _program_that_never_rests() -> Iterator[None]:
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
    (step,) = peers(GarmentClassifier().train(), _data(), _sgd, "cpu", modes=(), loops=False).values()
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
