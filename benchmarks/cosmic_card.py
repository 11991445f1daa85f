"""CosmicTagger's two networks on a card: images per second, memory and first step, compared with the original.

`BENCHMARK_PROFILES` names a file that gets the kernels of ten steps of each.
"""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from benchmarks.cosmic_step import RATE, pictures, training_executor
from benchmarks.report import Row, Table
from benchmarks.separate_processes import profiled
from cosmictagger.configuration.choices import Precision

IMAGES = 8
STEPS = 10
GIB = 2**30


@dataclass(frozen=True)
class Original:
    """Figures of the original code in eager float32 on an H200, and the targets."""

    network: str
    rate: float
    gibibytes: float
    wanted_rate: float
    wanted_memory: float
    """As a fraction of the original's."""


ORIGINALS = (Original("a21", 23.5, 17.7, 105, 0.45), Original("uresnet", 7.1, 90.1, 23, 0.55))


def measure(device: str, rounds: int) -> Table:
    """Medians of the rounds; batch 8 at downsample 1 in bfloat16 with float32 master weights."""
    command = "make bench DEVICE=cuda ARGS='--only cosmic_card'"
    title = f"CosmicTagger, downsample 1, batch {IMAGES}, bfloat16 with float32 master weights, on {device}"
    if device != "cuda":
        return Table(title=title, command=command, rows=[], verdict="This needs an NVIDIA card; nothing was measured.")
    rows, verdicts = [], []
    for original in ORIGINALS:
        rate, peak, building, first = _measured(original.network, rounds)
        share = peak / original.gibibytes
        rows += [
            Row(f"{original.network}, original (eager, float32)", original.rate, "images/s", 1.0),
            Row(f"{original.network}", rate, "images/s", rate / original.rate),
            Row(f"{original.network}, peak memory", peak, "GiB", original.gibibytes / peak),
            Row(f"{original.network}, building the network", building, "s"),
            Row(f"{original.network}, first step after that", first, "s"),
        ]
        verdicts.append(
            f"{original.network}: {rate:.1f} images/s (target {original.wanted_rate}), {share:.0%} of the memory "
            f"(at most {original.wanted_memory:.0%}), first step done after {building + first:.1f} s (at most 20)."
        )
    return Table(title=title, command=command, rows=rows, verdict="\n".join(verdicts))


def _measured(network: str, rounds: int) -> tuple[float, float, float, float]:
    """Images per second, peak memory in GiB, seconds to build the network, and seconds for its first step."""
    # Memory of the previous network, including its graphs, would be counted as well.
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    batch = pictures(IMAGES)
    start = time.perf_counter()
    device = training_executor("cuda", Precision.bfloat16, network)
    built = time.perf_counter()
    device.train([batch], RATE)
    building, first = built - start, time.perf_counter() - built
    for _ in range(3):
        device.train([batch], RATE)

    def steps() -> int:
        for _ in range(STEPS):
            device.train([batch], RATE)
        return STEPS

    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        steps()
        rates.append(STEPS * IMAGES / (time.perf_counter() - start))
    if os.environ.get("BENCHMARK_PROFILES"):
        profiled(steps, f"CosmicTagger, {network}", Path(os.environ["BENCHMARK_PROFILES"]), "cuda")
    return median(rates), torch.cuda.max_memory_allocated() / GIB, building, first
