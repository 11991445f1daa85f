"""The loss of CosmicTagger's A21 in bfloat16 with float32 master weights, compared with float32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean

from benchmarks.cosmic_step import training_executor
from benchmarks.report import Row, Table
from cosmictagger.configuration.choices import Precision
from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader

STEPS = 500
LAST = 50
"""Number of last steps whose mean loss is compared."""
EVENTS = 400
IMAGES = 8
RATE = 3e-4
WARM_UP = 50
ALLOWED = 0.02
FOLDER = Path("output/benchmarks")


def measure(device: str, rounds: int) -> Table:
    """Mean loss of the last steps in both precisions: same weights, same events in the same order."""
    command = "make bench DEVICE=cuda ARGS='--only cosmic_precision'"
    title = f"A21, downsample 1, batch {IMAGES}, loss over the last {LAST} of {STEPS} steps, on {device}"
    if device != "cuda":
        return Table(title=title, command=command, rows=[], verdict="This needs an NVIDIA card; nothing was measured.")
    path = generated_file(FOLDER, events=EVENTS, seed=1, workers=8)
    ends = {
        precision: fmean(list(_losses(device, precision, path))[-LAST:])
        for precision in (Precision.float32, Precision.bfloat16)
    }
    full, half = ends.values()
    return Table(
        title=title,
        command=command,
        rows=[Row(precision.name, loss, "loss", full / loss) for precision, loss in ends.items()],
        verdict=f"The losses differ by {abs(half - full) / full:.2%}; allowed: {ALLOWED:.0%}.",
    )


def _losses(device: str, precision: Precision, path: Path) -> Iterator[float]:
    trainer = training_executor(device, precision, "a21")
    open_loader = partial(Loader, minibatch_size=IMAGES, downsample=1, sparse=True, seed=7, workers=8)
    with EventFile(path) as file, open_loader(file) as loader:
        for step in range(STEPS):
            yield trainer.train([next(loader)], RATE * (1 + 2 * min(step / WARM_UP, 1)) / 3).loss
