"""What the comparison with eager PyTorch adds to the first call of a program, and to later calls."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import pilotage
from benchmarks.cosmic_step import RATE, pictures
from benchmarks.report import Row, Table
from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.configuration.network import PRESETS
from cosmictagger.devices.engine import EngineExecutor
from cosmictagger.networks.uresnet import build
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES
from examples.fashion_mnist.model import GarmentClassifier

ALLOWED = 0.5
"""Seconds that the first call may take beyond one eager update."""

_LATER_CALLS = 30


def measure(device: str, rounds: int) -> Table:
    """Seconds of the first call without and with the comparison, of one eager update, and of later calls."""
    rows, extra = [], {}
    for name, make in (("tutorial", _tutorial), ("A21", _a21)):
        plain, checked, eager, later_plain, later_checked = ([] for _ in range(5))
        _first_call(make, device, "off")
        for _ in range(max(3, rounds // 2)):
            seconds, calls = _first_call(make, device, "off")
            plain.append(seconds)
            later_plain.append(calls)
            seconds, calls = _first_call(make, device, "first")
            checked.append(seconds)
            later_checked.append(calls)
            eager.append(_eager_update(name, device))
        medians = [statistics.median(each) for each in (plain, checked, eager, later_plain, later_checked)]
        extra[name] = statistics.median(b - a - c for a, b, c in zip(plain, checked, eager, strict=True))
        rows += [
            Row(f"{name}, first call, check off", medians[0], "s"),
            Row(f"{name}, first call, compared", medians[1], "s"),
            Row(f"{name}, one eager update", medians[2], "s"),
            Row(f"{name}, later calls, check off", 1e3 * medians[3], "ms"),
            Row(f"{name}, later calls, compared at first", 1e3 * medians[4], "ms"),
        ]
    return Table(
        title=f"The arrival check, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only arrival_check'",
        rows=rows,
        verdict="Beyond one eager update, the first call takes (median over runs) "
        + " and ".join(f"{seconds:.2f} s more ({name})" for name, seconds in extra.items())
        + f"; allowed: {ALLOWED} s.",
    )


def _first_call(make: Callable[[str], Callable[[], object]], device: str, check: str) -> tuple[float, float]:
    """Seconds of a first call, and of each later one."""
    before = os.environ.get("PILOTAGE_CHECK")
    os.environ["PILOTAGE_CHECK"] = check
    try:
        call = make(device)
        start = time.perf_counter()
        call()
        first = time.perf_counter() - start
    finally:
        if before is None:
            del os.environ["PILOTAGE_CHECK"]
        else:
            os.environ["PILOTAGE_CHECK"] = before
    # The second call may record a CUDA graph.
    call()
    seconds = []
    while len(seconds) < 3 or (len(seconds) < _LATER_CALLS and sum(seconds) < 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return first, statistics.median(seconds)


def _tutorial(device: str) -> Callable[[], object]:
    torch.manual_seed(0)
    model = GarmentClassifier().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    step = pilotage.training(model, optimizer, backend=device, tier="graph")
    batch = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
    return lambda: step(*batch)


def _a21(device: str) -> Callable[[], object]:
    network, optimizer = _network()
    executor = EngineExecutor(network, optimizer, LossBalanceScheme.focal, NUMBER_TYPES[Precision.float32], device)
    batch = pictures(1)
    return lambda: executor.train([batch], RATE)


def _network() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    network = build(PRESETS["a21"], NUMBER_TYPES[Precision.float32].activations)
    return network, build_optimizer(OptimizerKind.adam, network.parameters(), RATE)


def _eager_update(name: str, device: str) -> float:
    """Seconds of one update in eager PyTorch, as a script would write it."""
    torch.manual_seed(0)
    if name == "tutorial":
        model: nn.Module = GarmentClassifier().train().to(device)
        optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
        batch = torch.randn(16, 1, 28, 28, device=device), torch.randint(0, 10, (16,), device=device)

        def update() -> None:
            _, loss = model(*batch)
            loss.backward()
            optimizer.step()
    else:
        from cosmictagger.devices.eager import EagerExecutor

        network, optimizer = _network()
        eager = EagerExecutor(
            network, optimizer, LossBalanceScheme.focal, NUMBER_TYPES[Precision.float32], torch.device(device)
        )
        pixels = pictures(1)

        def update() -> None:
            eager.train([pixels], RATE)

    start = time.perf_counter()
    update()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
