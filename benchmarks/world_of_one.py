"""A world of one instance, compared with no world: what the exchange of gradients costs by itself.

On a card NCCL exchanges them, within the CUDA graphs. Two micro-batches make an update, so that gradients are pooled in
both. Each way has its own process.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

import pilotage
from benchmarks.comparison import Contender, repeated
from benchmarks.report import Row, Table
from benchmarks.separate_processes import in_processes
from examples.fashion_mnist.model import GarmentClassifier
from pilotage.distributed.peers import Peers
from pilotage.distributed.world import World
from pilotage.door import wrapping

BATCH = 16
ACCUMULATION = 2
UPDATES = 200
_ALONE, _ONE = "no world", "a world of one"
_ITERATIONS = (1, 50)


def measure(device: str, rounds: int) -> Table:
    """Updates per second of both, and the median ratio of neighbouring rounds."""
    rows: list[Row] = []
    verdicts: list[str] = []
    rates: dict[str, list[float]] = {}
    for iterations in _ITERATIONS:
        names = [f"{way}, deviceIterations {iterations}" for way in (_ALONE, _ONE)]
        with in_processes("benchmarks.world_of_one", names, device) as contenders:
            _alternate(contenders, 2 * rounds)
        alone, one = contenders
        ratio = statistics.median(mine / theirs for mine, theirs in zip(one.rates, alone.rates, strict=True))
        rows += [Row(each.name, each.median, "updates/s", each.median / alone.median) for each in contenders]
        rates |= {each.name: each.rates for each in contenders}
        verdicts.append(f"{100 * ratio:.1f} % (deviceIterations {iterations})")
    return Table(
        title=f"Tutorial classifier, {ACCUMULATION} x {BATCH}, compiled, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only world_of_one'",
        rows=rows,
        verdict=f"A world of one has {' and '.join(verdicts)} of the updates per second; at least 97 % are wanted.",
        details={"rates": rates},
    )


def _alternate(contenders: list[Contender], rounds: int) -> None:
    for number in range(rounds):
        for each in contenders if number % 2 == 0 else contenders[::-1]:
            each.run()


def contender(name: str, device: str) -> Callable[[], int]:
    """A round of one way."""
    way, _, iterations = name.partition(", deviceIterations ")
    if way == _ONE:
        # Users have no reason for a world of one, so there is no option for it.
        wrapping.peers_here = lambda: Peers(world=World(one_host=True))
    torch.manual_seed(0)
    model, count = GarmentClassifier().train(), int(iterations)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    trainer = pilotage.training(
        model,
        optimizer,
        backend=device,
        tier="compiled",
        distributed=True,
        gradient_accumulation=ACCUMULATION,
        device_iterations=count,
    )
    samples = count * ACCUMULATION * BATCH
    batch = torch.randn(samples, 1, 28, 28), torch.randint(0, 10, (samples,))
    return repeated(lambda: trainer(*batch), max(1, UPDATES // count), device, steps=count)
