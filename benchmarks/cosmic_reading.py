"""How fast CosmicTagger reads its events, from a generated file at downsample 1."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.generator.progress import terminal_progress
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader

EVENTS = 200
MINIBATCH = 4
DOWNSAMPLE = 1
LARCV = 30.0
"""Images per second of larcv's reader on two such cores, at the same downsampling."""
TARGET = 5.0
FOLDER = Path("output/benchmarks")


def measure(device: str, rounds: int) -> Table:
    """Images per second of the loader, dense and sparse, and from chunks as larcv writes them."""
    with terminal_progress("Generating") as progress:
        path = generated_file(FOLDER, events=EVENTS, seed=1, workers=2, progress=progress)
    contenders = [
        Contender("dense", _pass_over(path, sparse=False)),
        Contender("sparse (for a device that scatters)", _pass_over(path, sparse=True)),
        Contender("dense, stored in larcv's chunks", _pass_over(_in_chunks_of_larcv(path), sparse=False)),
    ]
    alternate(contenders, rounds)
    rows = [Row("larcv (measured separately)", LARCV, "images/s")]
    rows += [Row(each.name, each.median, "images/s", each.median / LARCV) for each in contenders]
    ratio = contenders[0].median / LARCV
    return Table(
        title=f"Reading {EVENTS} generated events at downsample {DOWNSAMPLE}",
        command="make bench ARGS='--only cosmic_reading'",
        rows=rows,
        verdict=f"Dense images are read {ratio:.1f} times as fast as with larcv; target: {TARGET:.0f} times.",
        details={"minibatch": MINIBATCH, "rates": {each.name: each.rates for each in contenders}},
    )


def _pass_over(path: Path, *, sparse: bool) -> Callable[[], int]:
    def every_event() -> int:
        with EventFile(path) as file, _loader(file, sparse) as loader:
            for _ in range(EVENTS // MINIBATCH):
                next(loader)
        return EVENTS

    return every_event


def _loader(file: EventFile, sparse: bool) -> Loader:
    return Loader(file, minibatch_size=MINIBATCH, downsample=DOWNSAMPLE, order="serial_access", seed=1, sparse=sparse)


def _in_chunks_of_larcv(path: Path) -> Path:
    """The same events with the chunks and the compression that larcv gives its voxels."""
    import h5py

    copy = path.with_name(f"larcv_chunks_{path.name}")
    if copy.is_file():
        return copy
    unfinished = copy.with_suffix(".part")
    shutil.copy(path, unfinished)
    with h5py.File(unfinished, "r+") as file:
        for group in ("sparse2d_sbndwire_group", "sparse2d_sbnd_cosmicseg_group"):
            name = f"Data/{group}/voxels"
            rows = file[name][:]
            del file[name]
            file.create_dataset(
                name, data=rows, chunks=(1000,), maxshape=(None,), compression="gzip", compression_opts=1
            )
    return unfinished.rename(copy)
