"""What the comparison with eager PyTorch adds to the first call of a program, and to later calls.

The statistic, fixed before it was measured: in each round a first call without the comparison, one with it and one
eager update follow each other, in changing order; what the comparison adds is the second less the other two, and the
result is the median over all rounds. It is computed from processor time (user and system) of one thread, because that
equals wall time on an idle machine and counts little of other programs; on a card, where the host waits, from wall
time. Python's garbage is collected before each part: a full collection takes as long as all of the check, and would
fall into one part or another by chance. Quartiles show how sure the result is. The same from wall time, and the
difference of the medians of wall time, which was the statistic before, are printed beside it.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

import pilotage
from benchmarks.comparison import synchronized
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

ROUNDS = {"tutorial": 20, "A21": 6}
"""The least number of rounds for each model."""

_LATER_CALLS = 30


class Seconds(NamedTuple):
    """How long something took."""

    processor: float
    wall: float


class Measured(NamedTuple):
    """One round."""

    plain: Seconds
    """The first call without the comparison."""
    compared: Seconds
    eager: Seconds
    later_plain: Seconds
    later_compared: Seconds

    def added(self, clock: str) -> float:
        """Seconds that the comparison adds beyond one eager update."""
        plain, compared, eager = (getattr(each, clock) for each in self[:3])
        return float(compared - plain - eager)


def measure(device: str, rounds: int) -> Table:
    """Seconds of the first call without and with the comparison, of one eager update, and of later calls."""
    clock = "wall" if device == "cuda" else "processor"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = {
            name: _rounds(make, name, device, max(rounds, ROUNDS[name]))
            for name, make in (("tutorial", _tutorial), ("A21", _a21))
        }
    finally:
        torch.set_num_threads(threads)
    rows = [row for name, measured in found.items() for row in _rows(name, measured, clock)]
    return Table(
        title=f"The arrival check, on {device}, one thread, {clock} time",
        command=f"make bench DEVICE={device} ARGS='--only arrival_check'",
        rows=rows,
        verdict="Beyond one eager update, the first call takes (median over rounds) "
        + "; ".join(_verdict(name, measured, clock) for name, measured in found.items())
        + f". Allowed: {ALLOWED} s.",
        details={name: [each._asdict() for each in measured] for name, measured in found.items()},
    )


def _rounds(make: Callable[[str], Callable[[], object]], name: str, device: str, count: int) -> list[Measured]:
    _first_call(make, device, "first")
    _eager_update(name, device)
    measured = []
    for number in range(count):
        parts: dict[str, Callable[[], tuple[Seconds, Seconds]]] = {
            "off": lambda: _first_call(make, device, "off"),
            "first": lambda: _first_call(make, device, "first"),
            "eager": lambda: (_eager_update(name, device), Seconds(0.0, 0.0)),
        }
        order = list(parts)[number % 3 :] + list(parts)[: number % 3]
        found = {each: parts[each]() for each in order}
        (plain, later_plain), (compared, later_compared) = found["off"], found["first"]
        measured.append(Measured(plain, compared, found["eager"][0], later_plain, later_compared))
    return measured


def _rows(name: str, measured: list[Measured], clock: str) -> list[Row]:
    names = ("first call, check off", "first call, compared", "one eager update")
    medians = [statistics.median(getattr(each[place], clock) for each in measured) for place in range(5)]
    return [
        *(Row(f"{name}, {label}", 1e3 * median, "ms") for label, median in zip(names, medians, strict=False)),
        Row(f"{name}, later calls, check off", 1e3 * medians[3], "ms"),
        Row(f"{name}, later calls, compared at first", 1e3 * medians[4], "ms"),
    ]


def _verdict(name: str, measured: list[Measured], clock: str) -> str:
    added = [each.added(clock) for each in measured]
    low, middle, high = statistics.quantiles(added, n=4, method="inclusive")
    wall = statistics.median(each.added("wall") for each in measured)
    plain, compared, eager = (statistics.median(each[place].wall for each in measured) for place in range(3))
    return (
        f"{middle:.2f} s more ({name}; quartiles {low:.2f} and {high:.2f} s; by wall time {wall:.2f} s, "
        f"by the difference of its medians {compared - plain - eager:.2f} s)"
    )


def _timed(call: Callable[[], object], device: str) -> Seconds:
    start, used = time.perf_counter(), time.process_time()
    call()
    synchronized(device)
    return Seconds(time.process_time() - used, time.perf_counter() - start)


def _first_call(make: Callable[[str], Callable[[], object]], device: str, check: str) -> tuple[Seconds, Seconds]:
    """Seconds of a first call, and of each later one."""
    before = os.environ.get("PILOTAGE_CHECK")
    os.environ["PILOTAGE_CHECK"] = check
    try:
        call = make(device)
        gc.collect()
        first = _timed(call, device)
    finally:
        if before is None:
            del os.environ["PILOTAGE_CHECK"]
        else:
            os.environ["PILOTAGE_CHECK"] = before
    # The second call may record a CUDA graph.
    call()
    later: list[Seconds] = []
    while len(later) < 3 or (len(later) < _LATER_CALLS and sum(each.wall for each in later) < 1):
        later.append(_timed(call, device))
    medians = (statistics.median(each[place] for each in later) for place in range(2))
    return first, Seconds(*medians)


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


def _eager_update(name: str, device: str) -> Seconds:
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

    gc.collect()
    return _timed(update, device)
