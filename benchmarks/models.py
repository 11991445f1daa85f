"""Twelve models, each trained by eager PyTorch, by all modes of torch.compile and by Pilotage, in one run.

Prints steps per second, peak memory and the time until the first round was done. Every contender has its own process.
Six models compile side by side on a card; then the contenders of each model alternate, one model after the other.
`BENCHMARK_MODELS` and `BENCHMARK_WAYS` name what to measure by the beginnings of names, separated by semicolons.
`BENCHMARK_PROFILES` names a folder for the kernels of the best contenders, `BENCHMARK_LIMIT` the seconds after which
those that are not ready are left out. `BENCHMARK_TINY=1` takes tiny models: it measures nothing real but runs anywhere.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

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
_PEERS = tuple(f"torch.compile, {mode}" for mode in _MODES)
_BASELINES = ("eager PyTorch", *_PEERS)
_OURS = {"Pilotage, deviceIterations 1": 1, "Pilotage, deviceIterations 10": 10}
_LARGE = 0.020
"""Seconds of an eager step above which a model counts as large."""

_MODELS_AT_ONCE = 6
"""How many models are compiled side by side on a card, whose memory their contenders share."""

_LIMIT = float(os.environ.get("BENCHMARK_LIMIT", "1800"))
"""Seconds after which contenders that are not ready are left out."""


def measure(device: str, rounds: int) -> Table:
    """Steps per second of each model, compared with the best mode of torch.compile."""
    rows: list[Row] = []
    ratios: dict[str, float] = {}
    large: list[str] = []
    notes: list[str] = []
    chosen = [name for name in SUBJECTS if _is_chosen(name)]
    for name in [name for name in chosen if _missing_package(name)]:
        notes.append(f"{name}: not measured, {SUBJECTS[name].package} is not installed.")
        chosen.remove(name)
    for subject, measured in _measured(chosen, device, rounds):
        rates = {way: contender.median for way, contender in measured.items()}
        peers = [way for way in rates if way.startswith("torch.compile")]
        own = [way for way in _OURS if way in rates]
        best = max(peers, key=rates.__getitem__, default="")
        for way, contender in measured.items():
            rows.append(Row(f"{subject}: {way}", rates[way], "steps/s", rates[way] / rates[best] if best else None))
            rows.append(Row(f"{subject}: {way}, peak", contender.peak_bytes / 2**20, "MiB"))
            rows.append(Row(f"{subject}: {way}, first round", contender.seconds_until_ready, "s"))
        if not best or not own:
            notes.append(f"{subject}: not compared; the lines above say why.")
            continue
        ours = max(own, key=rates.__getitem__)
        ratios[subject] = rates[ours] / rates[best]
        memory = measured[ours].peak_bytes / max(1, measured[best].peak_bytes)
        notes.append(f"{subject}: {ratios[subject]:.2f} times {best}, with {memory:.2f} times its peak memory.")
        if 1 / rates.get("eager PyTorch", math.inf) > _LARGE:
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


def _ways() -> list[str]:
    """The ways of training that the user wants measured."""
    asked = [each.strip() for each in os.environ.get("BENCHMARK_WAYS", "").split(";") if each.strip()]
    return [way for way in (*_BASELINES, *_OURS) if not asked or way.startswith(tuple(asked))]


def _is_chosen(name: str) -> bool:
    """Whether the user wants a model measured."""
    asked = [each.strip() for each in os.environ.get("BENCHMARK_MODELS", "").split(";") if each.strip()]
    return not asked or name.startswith(tuple(asked))


def _missing_package(name: str) -> bool:
    package = SUBJECTS[name].package
    return package is not None and importlib.util.find_spec(package) is None


def _measured(subjects: Sequence[str], device: str, rounds: int) -> Iterator[tuple[str, dict[str, Contender]]]:
    """The contenders of each model after their rounds, by way of training."""
    at_once = _MODELS_AT_ONCE if device == "cuda" else 1
    for start in range(0, len(subjects), at_once):
        part = subjects[start : start + at_once]
        names = {f"{subject}: {way}": (subject, way) for subject in part for way in _ways()}
        with in_processes("benchmarks.models", names, device, limit=_LIMIT) as contenders:
            for subject in part:
                own = {names[each.name][1]: each for each in contenders if names[each.name][0] == subject}
                alternate([*own.values()], 1 if _is_tiny() else rounds)
                _write_profiles(own)
                yield subject, own


def _write_profiles(contenders: Mapping[str, Contender]) -> None:
    """Write what the best mode of torch.compile and our best way do on the card, if the user wants it."""
    folder = os.environ.get("BENCHMARK_PROFILES")
    for ways in (_PEERS, _OURS) if folder else ():
        measured = [contenders[way] for way in ways if way in contenders]
        for each in sorted(measured, key=lambda contender: -contender.median)[:1]:
            assert folder is not None
            assert each.profile is not None
            each.profile(str(Path(folder, re.sub(r"[^A-Za-z0-9]+", "-", each.name) + ".txt").absolute()))


def contender(name: str, device: str) -> Callable[[], int]:
    """A round of one way of training one of the models."""
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    subject, _, way = name.rpartition(": ")
    each = SUBJECTS[subject]
    model, batch = made(each, device, for_peers=way not in _OURS)
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


def made(subject: Subject, device: str, *, for_peers: bool) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A model and its batch; ``for_peers`` takes a model of torch's own operations only."""
    make = (subject.make_for_peers if for_peers else None) or subject.make
    model, batch = make(**(subject.tiny if _is_tiny() else subject.full))
    return Autocast(model, device) if subject.autocast else model, batch


def _is_tiny() -> bool:
    return os.environ.get("BENCHMARK_TINY") == "1"
