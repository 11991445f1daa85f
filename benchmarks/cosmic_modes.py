"""CosmicTagger in IPU mode, through PopTorch's interface, compared with the device's own mode."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from statistics import fmean

import torch

from benchmarks.comparison import Contender, alternate
from benchmarks.cosmic_reading import FOLDER
from benchmarks.report import Row, Table
from cosmictagger.configuration.choices import ComputeMode, Precision
from cosmictagger.configuration.data import Generated
from cosmictagger.configuration.network import A21, Network
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.data.generator.file import generated_file
from cosmictagger.devices.choosing import device_for, environment_for
from cosmictagger.devices.executor import Executor
from cosmictagger.devices.loading import BatchLoader, Purpose
from cosmictagger.modes.sources import cached, training_events
from cosmictagger.processes.process_group import Processes

TARGET = 0.9
RATE = 3e-4


@dataclass(frozen=True)
class Size:
    """Network, precision and amount of work."""

    mode: ComputeMode
    """The device's own."""
    network: Network
    precision: Precision
    downsample: int
    images: int
    events: int
    steps: int
    """Of one round."""


SIZES = {
    "cuda": Size(ComputeMode.GPU, A21, Precision.bfloat16, downsample=1, images=8, events=64, steps=20),
    "cpu": Size(
        ComputeMode.CPU,
        replace(A21, depth=2, n_initial_filters=4, bottleneck_deepest=8),
        Precision.float32,
        downsample=2,
        images=2,
        events=8,
        steps=2,
    ),
}


@dataclass
class Work:
    """One mode with its device and loader."""

    executor: Executor
    loader: BatchLoader
    size: Size
    waits: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def round(self) -> int:
        """Load and train some steps."""
        for _ in range(self.size.steps):
            start = time.perf_counter()
            batch = next(self.loader)
            self.waits.append(time.perf_counter() - start)
            self.losses.append(self.executor.train([batch], RATE).loss)
        return self.size.steps * self.size.images


def measure(device: str, rounds: int) -> Table:
    """Images per second of both modes, including data loading, without compilation and the first round."""
    size = SIZES["cuda" if device == "cuda" else "cpu"]
    generated_file(FOLDER, events=size.events, seed=Generated().generator_seed, workers=len(os.sched_getaffinity(0)))
    with ExitStack() as open_things:
        runs = {mode: _run(mode, size, device, open_things) for mode in (size.mode, ComputeMode.IPU)}
        contenders = [Contender(f"{mode.name} mode", run.round) for mode, run in runs.items()]
        alternate(contenders, rounds)
    own, ipu = (each.median for each in contenders)
    rows = []
    for contender, run in zip(contenders, runs.values(), strict=True):
        rows += [
            Row(contender.name, contender.median, "images/s", contender.median / own),
            Row(f"{contender.name}, waiting for events", 1000 * fmean(run.waits[size.steps :]), "ms of a step"),
        ]
    return Table(
        title=f"A21, downsample {size.downsample}, batch {size.images}, {size.precision.name}, on {device}: two modes",
        command=f"make bench DEVICE={device} ARGS='--only cosmic_modes'",
        rows=rows,
        verdict=f"IPU mode trains at {ipu / own:.1%} of {size.mode.name} mode's rate; target: {TARGET:.0%}.",
        details={
            "rates": {each.name: each.rates for each in contenders},
            "first_losses": {mode.name: run.losses[:3] for mode, run in runs.items()},
            "placements": {mode.name: str(run.executor.placement()) for mode, run in runs.items()},
        },
    )


def _run(mode: ComputeMode, size: Size, device: str, open_things: ExitStack) -> Work:
    data = Generated(data_directory=str(FOLDER), events=size.events, downsample=size.downsample, seed=7)
    options = Run(id=mode.name, compute_mode=mode, minibatch_size=size.images, precision=size.precision)
    config = Configuration(run=options, data=data, network=size.network)
    # As the command does before it imports anything of a vendor's.
    os.environ.update({**environment_for(config), "PILOTAGE_BACKEND": device})
    torch.manual_seed(0)
    chosen_device = device_for(config)
    executor = chosen_device.executor(config)
    file = open_things.enter_context(training_events(config))
    loader = chosen_device.loader(config, cached(config, file), "random_blocks", Processes(), Purpose.training)
    open_things.callback(loader.close)
    return Work(executor, loader, size)
