"""Twelve models, each trained by eager PyTorch, by all modes of torch.compile and by Pilotage, in one run.

Prints steps per second and peak memory. Every contender has its own process, and all contenders of a model alternate.
`BENCHMARK_TINY=1` takes tiny models: it measures nothing real, but runs everywhere.
"""

from __future__ import annotations

import importlib.util
import math
import os
import statistics
from collections.abc import Callable, Mapping

import torch
from torch import nn

import pilotage
from benchmarks.baselines import baselines
from benchmarks.comparison import Contender, alternate, repeated
from benchmarks.report import Row, Table
from benchmarks.separate_processes import in_processes
from benchmarks.twelve import SUBJECTS
from benchmarks.twelve.subject import Autocast, Subject

STEPS = 20
_MODES = ("default", "reduce-overhead", "max-autotune")
_BASELINES = ("eager PyTorch", *(f"torch.compile, {mode}" for mode in _MODES))
_OURS = {"Pilotage, deviceIterations 1": 1, "Pilotage, deviceIterations 10": 10}
_LARGE = 0.020
"""Seconds of an eager step above which a model counts as large."""


def measure(device: str, rounds: int) -> Table:
    """Steps per second of each model, compared with the best mode of torch.compile."""
    rows: list[Row] = []
    ratios: dict[str, float] = {}
    large: list[str] = []
    notes: list[str] = []
    for subject, each in SUBJECTS.items():
        if each.package is not None and importlib.util.find_spec(each.package) is None:
            notes.append(f"{subject}: not measured, {each.package} is not installed.")
            continue
        try:
            measured = _contenders(subject, device, rounds)
        except RuntimeError as error:
            notes.append(f"{subject}: not measured. {error}")
            continue
        rates = {way: contender.median for way, contender in measured.items()}
        best = max((way for way in rates if way.startswith("torch.compile")), key=rates.__getitem__)
        ours = max(_OURS, key=rates.__getitem__)
        rows += [Row(f"{subject}: {way}", rate, "steps/s", rate / rates[best]) for way, rate in rates.items()]
        rows += [
            Row(f"{subject}: {way}, peak", contender.peak_bytes / 2**20, "MiB") for way, contender in measured.items()
        ]
        ratios[subject] = rates[ours] / rates[best]
        memory = measured[ours].peak_bytes / max(1, measured[best].peak_bytes)
        notes.append(f"{subject}: {ratios[subject]:.2f} times {best}, with {memory:.2f} times its peak memory.")
        if 1 / rates["eager PyTorch"] > _LARGE:
            large.append(subject)
    return Table(
        title=f"Twelve models, training steps, on {device}{', tiny' if _is_tiny() else ''}",
        command=f"make bench DEVICE={device} ARGS='--only models'",
        rows=rows,
        verdict="\n".join([*notes, *_verdicts(ratios, large)]),
        details={"ratios": ratios, "large": large},
    )


def _verdicts(ratios: Mapping[str, float], large: list[str]) -> list[str]:
    if not ratios:
        return ["No model was measured."]
    worst = min(ratios, key=ratios.__getitem__)
    found = [f"Geometric mean {_mean(list(ratios.values())):.2f}; lowest {ratios[worst]:.2f} ({worst})."]
    if large:
        found.append(f"Eager steps above 20 ms: geometric mean {_mean([ratios[each] for each in large]):.2f}.")
    return found


def _mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def _contenders(subject: str, device: str, rounds: int) -> dict[str, Contender]:
    """The contenders of a model after their rounds, by way of training."""
    names = {f"{subject}: {way}": way for way in (*_BASELINES, *_OURS)}
    with in_processes("benchmarks.models", names, device) as contenders:
        alternate(contenders, 1 if _is_tiny() else max(rounds, 5))
    return {names[each.name]: each for each in contenders}


def contender(name: str, device: str) -> Callable[[], int]:
    """A round of one way of training one of the models."""
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    subject, _, way = name.rpartition(": ")
    each = SUBJECTS[subject]
    model, batch = _made(each, device)
    steps = 1 if _is_tiny() else STEPS
    if way not in _OURS:
        modes = (way.removeprefix("torch.compile, "),) if way.startswith("torch.compile") else ()
        found = baselines(
            model, batch, lambda given: each.optimizer(given, fused=device == "cuda"), device, modes=modes, loops=False
        )
        return repeated(found[way], steps, device)
    iterations = min(_OURS[way], 2) if _is_tiny() else _OURS[way]
    trainer = pilotage.training(
        model, each.optimizer(model.parameters()), device_iterations=iterations, backend=device, tier="compiled"
    )
    inputs = [torch.cat([tensor] * iterations).to(device) for tensor in batch]
    return repeated(lambda: trainer(*inputs), max(1, steps // iterations), device, steps=iterations)


def _made(subject: Subject, device: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    model, batch = subject.make(**(subject.tiny if _is_tiny() else subject.full))
    return Autocast(model, device) if subject.autocast else model, batch


def _is_tiny() -> bool:
    return os.environ.get("BENCHMARK_TINY") == "1"
