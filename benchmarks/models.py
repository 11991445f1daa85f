"""Twelve models, each trained by eager PyTorch, by all modes of torch.compile and by Pilotage, in one run.

Prints steps per second, peak memory and the time until the first round was done. Every contender has its own process.
On a card, everything is compiled first, several contenders side by side, which fills the caches of both compilers. Then
the contenders start again, two models at a time, and those of each model alternate.

`BENCHMARK_MODELS` and `BENCHMARK_WAYS` name what to measure by the beginnings of names, separated by semicolons.
`BENCHMARK_LIMIT` has the seconds after which a contender that is not ready is left out, `BENCHMARK_AT_ONCE` how many
contenders compile side by side, on a processor too. `BENCHMARK_TINY=1` takes tiny models: it measures nothing real but
runs anywhere.

`BENCHMARK_RESULTS` names a file for the results, written after each model: what it has already is not measured again.
`BENCHMARK_COMPILED` names a list of what is in the caches, `BENCHMARK_PROFILES` one for the kernels of the best ways.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import nn

import pilotage
from benchmarks import report
from benchmarks.baselines import baselines
from benchmarks.comparison import Contender, alternate, repeated
from benchmarks.report import Row, Table
from benchmarks.separate_processes import in_processes, warm_up
from benchmarks.twelve import SUBJECTS
from benchmarks.twelve.results import (
    EAGER,
    Model,
    Way,
    details_of,
    geometric_mean,
    models_from_data,
    models_to_data,
)
from benchmarks.twelve.subject import Autocast, Subject

STEPS = 20
_MODES = ("default", "reduce-overhead", "max-autotune")
_PEERS = tuple(f"torch.compile, {mode}" for mode in _MODES)
_BASELINES = (EAGER, *_PEERS)
_OURS = {"Pilotage, deviceIterations 1": 1, "Pilotage, deviceIterations 10": 10}

_MODELS_AT_ONCE = 2
"""How many models are measured one after the other before their processes end; all of them share the card's memory."""

_COMPILED_AT_ONCE = 8
"""How many contenders compile side by side on a card."""

_LIMIT = float(os.environ.get("BENCHMARK_LIMIT", "1800"))
"""Seconds after which contenders that are not ready are left out."""


def measure(device: str, rounds: int) -> Table:
    """Steps per second of each model, compared with the best mode of torch.compile."""
    path = _file("BENCHMARK_RESULTS")
    models = models_from_data(details_of(path).get("models", {}))
    notes: list[str] = []
    chosen = [name for name in SUBJECTS if _is_chosen(name) and not _is_complete(models.get(name))]
    for name in [name for name in chosen if _missing_package(name)]:
        notes.append(f"{name}: not measured, {SUBJECTS[name].package} is not installed.")
        chosen.remove(name)
    for subject, model in _measured(chosen, device, rounds):
        models[subject] = model
        if path is not None:
            report.save([_table(models, device, notes)], device, path)
    return _table(models, device, notes)


def _table(models: Mapping[str, Model], device: str, notes: Sequence[str]) -> Table:
    rows: list[Row] = []
    verdicts: list[str] = []
    for subject, model in models.items():
        best = model.ways[model.peer].rate if model.peer else None
        for name, way in model.ways.items():
            rows.append(Row(f"{subject}: {name}", way.rate, "steps/s", way.rate / best if best else None))
            rows.append(Row(f"{subject}: {name}, peak", way.peak_bytes / 2**20, "MiB"))
            rows.append(Row(f"{subject}: {name}, first round", way.seconds_until_ready, "s"))
        if model.is_compared:
            verdicts.append(
                f"{subject}: {model.ratio:.2f} times {model.peer}, with {model.memory:.2f} times its peak memory."
            )
        if model.left_out:
            verdicts.append(f"{subject}: left out {'; '.join(model.left_out)}, for the reasons above.")
    compared = {name: model for name, model in models.items() if model.is_compared}
    return Table(
        title=f"Twelve models, training steps, on {device}{', tiny' if _is_tiny() else ''}",
        command=f"make bench DEVICE={device} ARGS='--only models'",
        rows=rows,
        verdict="\n".join([*notes, *verdicts, *_verdicts(compared)]),
        details={"models": models_to_data(models)},
    )


def _verdicts(models: Mapping[str, Model]) -> list[str]:
    if not models:
        return ["No model was compared."]
    worst = min(models, key=lambda name: models[name].ratio)
    mean = geometric_mean(model.ratio for model in models.values())
    found = [f"Geometric mean {mean:.2f}; lowest {models[worst].ratio:.2f} ({worst})."]
    if large := [model.ratio for model in models.values() if model.is_large]:
        found.append(f"Eager steps above 20 ms: geometric mean {geometric_mean(large):.2f}.")
    return found


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


def _is_complete(model: Model | None) -> bool:
    """Whether everything that the user wants is measured."""
    return model is not None and not set(_ways()) - set(model.ways)


def _file(variable: str) -> Path | None:
    """The file that an environment variable names."""
    name = os.environ.get(variable)
    return Path(name).absolute() if name else None


def _measured(subjects: Sequence[str], device: str, rounds: int) -> Iterator[tuple[str, Model]]:
    """Each model after the rounds of its contenders."""
    is_ahead = device == "cuda" or "BENCHMARK_AT_ONCE" in os.environ
    late = _compile_ahead(subjects, device) if is_ahead else set()
    at_once = _MODELS_AT_ONCE if device == "cuda" else 1
    for start in range(0, len(subjects), at_once):
        part = subjects[start : start + at_once]
        names = {f"{subject}: {way}": (subject, way) for subject in part for way in _ways()}
        started = [name for name in names if name not in late]
        with in_processes("benchmarks.models", started, device, limit=_LIMIT) as contenders:
            for subject in part:
                own = {names[each.name][1]: each for each in contenders if names[each.name][0] == subject}
                alternate([*own.values()], 1 if _is_tiny() else rounds)
                _write_profiles(own)
                ways = {way: Way(each.rates, each.peak_bytes, each.seconds_until_ready) for way, each in own.items()}
                yield subject, Model(ways, [way for way in _ways() if way not in ways])


def _compile_ahead(subjects: Sequence[str], device: str) -> set[str]:
    """Fill the caches of the compilers; returns the contenders that took too long."""
    path, late = _file("BENCHMARK_COMPILED"), set()
    done = set(path.read_text().splitlines()) if path is not None and path.exists() else set()
    names = [f"{subject}: {way}" for subject in subjects for way in _ahead() if f"{subject}: {way}" not in done]

    def compiled(name: str) -> None:
        try:
            seconds = warm_up("benchmarks.models", name, device, limit=_LIMIT)
        except TimeoutError as error:
            late.add(name)
            print(f"Left out: {error}", flush=True)
        except RuntimeError as error:
            # It may have lacked memory beside the others, and is compiled when it is measured.
            print(f"Not compiled ahead: {error}", flush=True)
        else:
            print(f"Compiled ahead: {name}, {seconds:.0f} s", flush=True)
            if path is not None:
                with path.open("a") as file:
                    file.write(f"{name}\n")

    with ThreadPoolExecutor(int(os.environ.get("BENCHMARK_AT_ONCE", _COMPILED_AT_ONCE))) as pool:
        list(pool.map(compiled, names))
    return late


def _ahead() -> list[str]:
    """The ways of training to compile ahead, those that take longest first; our two have the same code."""
    ours = [way for way in _ways() if way in _OURS][:1]
    return [*reversed([way for way in _ways() if way in _PEERS]), *ours]


def _write_profiles(contenders: Mapping[str, Contender]) -> None:
    """Add what the best mode of torch.compile and our best way do on the card to a file, if the user wants it."""
    path = _file("BENCHMARK_PROFILES")
    for ways in (_PEERS, _OURS) if path is not None else ():
        measured = [contenders[way] for way in ways if way in contenders]
        for each in sorted(measured, key=lambda contender: -contender.median)[:1]:
            assert each.profile is not None
            each.profile(str(path))


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
