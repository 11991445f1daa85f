"""Compare this checkout with another one: ``python -m benchmarks.regression --against FOLDER [--device cpu]``.

The folder needs the other checkout's src and dropins/src only.

Each checkout runs in its own process with the same benchmark code. The two alternate, so that disturbances affect both,
and the ratio of each pair counts. Both processes are restarted a few times, because memory addresses and the choice of
cores can change the speed of a process by several per cent.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

from benchmarks.comparison import repeated
from benchmarks.report import Row, Table, machine, save
from benchmarks.separate_processes import in_processes

ROOT = Path(__file__).resolve().parent.parent
STARTS = 4
"""How often both processes are started."""

ALLOWED = 0.05
"""How much slower this checkout may be before the program exits with status 1."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, required=True, help="folder of the other checkout")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of rounds per contender (20)")
    parser.add_argument("--only", choices=_CONTENDERS, action="append", help="can be repeated")
    parser.add_argument("--json", type=Path, help="file for the results")
    arguments = parser.parse_args()
    if not (arguments.against / "src" / "pilotage").is_dir():
        parser.error(f"{arguments.against} is not a checkout of Pilotage: it has no src/pilotage.")
    tables = []
    for name in arguments.only or _CONTENDERS:
        here, there = _rates(name, arguments.against.resolve(), arguments.device, arguments.pairs)
        tables.append(_table(name, arguments.device, here, there))
        print(tables[-1], end="\n\n", flush=True)
        if arguments.json is not None:
            save(tables, arguments.device, arguments.json)
    print(f"Machine: {machine(arguments.device)}")
    return 1 if any(table.details["ratio"] > 1 + ALLOWED for table in tables) else 0


def _rates(name: str, other: Path, device: str, pairs: int) -> tuple[list[float], list[float]]:
    """The steps per second of each round here and there, pair by pair."""
    ours: list[float] = []
    theirs: list[float] = []
    for start in range(STARTS):
        with (
            in_processes("benchmarks.regression", [name], device, path=_path(ROOT)) as (here,),
            in_processes("benchmarks.regression", [name], device, path=_path(other)) as (there,),
        ):
            for pair in range(start, pairs, STARTS):
                for each in (here, there) if pair % 2 == 0 else (there, here):
                    each.run()
            ours += here.rates
            theirs += there.rates
    return ours, theirs


def _path(checkout: Path) -> list[str]:
    return [str(checkout / "src"), str(checkout / "dropins" / "src"), str(ROOT)]


def _table(name: str, device: str, here: list[float], there: list[float]) -> Table:
    # The time of a round here divided by the time of the same round there, for each pair.
    ratios = [theirs / ours for ours, theirs in zip(here, there, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    median = statistics.median(ratios)
    return Table(
        title=f"{name} on {device}: time here / time there, {len(ratios)} alternating pairs",
        command=f"python -m benchmarks.regression --against FOLDER --device {device} --only {name}",
        rows=[
            Row("here", statistics.median(here), "steps/s"),
            Row("there", statistics.median(there), "steps/s"),
            Row("median", 100 * median, "%"),
            Row("lower quartile", 100 * low, "%"),
            Row("upper quartile", 100 * high, "%"),
        ],
        verdict=f"This checkout takes {median:.3f} times as long.",
        details={"ratio": median, "here": here, "there": there},
    )


def contender(name: str, device: str) -> Callable[[], int]:
    """One round of a contender."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return _CONTENDERS[name](device)


def _call(device: str) -> Callable[[], int]:
    """A call of a model with 100 small parameters, nearly all of which is overhead."""
    import poptorch

    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(50))).eval()
    options = poptorch.Options().runOn(device).showCompilationProgressBar(False)
    wrapped, inputs = poptorch.inferenceModel(model, options), torch.randn(4, 4)
    return repeated(lambda: wrapped(inputs), 2000, device)


def _device_loop(device: str, tier: str, iterations: int) -> Callable[[], int]:
    """The tutorial's classifier, one call after the other."""
    import pilotage
    from examples.fashion_mnist.model import GarmentClassifier

    model = GarmentClassifier().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    trainer = pilotage.training(model, optimizer, device_iterations=iterations, backend=device, tier=tier)
    images, labels = torch.randn(16 * iterations, 1, 28, 28), torch.randint(0, 10, (16 * iterations,))
    calls = {"cpu": 200, "cuda": 2000}[device] // iterations
    return repeated(lambda: trainer(images, labels), calls, device, steps=iterations)


def _tutorial(device: str) -> Callable[[], int]:
    """The tutorial's classifier, fed by its loader."""
    import poptorch
    from examples.fashion_mnist.model import GarmentClassifier

    steps = {"cpu": 200, "cuda": 1000}[device]
    model = GarmentClassifier().train()
    options = poptorch.Options().runOn(device).showCompilationProgressBar(False)
    dataset = TensorDataset(torch.randn(16 * steps, 1, 28, 28), torch.randint(0, 10, (16 * steps,)))
    loader = poptorch.DataLoader(options, dataset, batch_size=16, shuffle=True)
    trainer = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9))

    def run() -> int:
        for images, labels in loader:
            trainer(images, labels)
        return steps

    run()
    return run


_CONTENDERS: dict[str, Callable[[str], Callable[[], int]]] = {
    "tutorial": _tutorial,
    "call_overhead": _call,
    "device_loop_1_graph": lambda device: _device_loop(device, "graph", 1),
    "device_loop_1_compiled": lambda device: _device_loop(device, "compiled", 1),
    "device_loop_50_compiled": lambda device: _device_loop(device, "compiled", 50),
}


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
