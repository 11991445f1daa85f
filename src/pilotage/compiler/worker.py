"""The compiling process: ``python -m pilotage.compiler.worker JOB``.

It times the captured program in each memory layout, compiles the good ones, checks the compiled code against the graph,
times everything again, and stores the fastest way in the cache. It exits when its parent does.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.fx import GraphModule

from pilotage.compiler.accuracy.float64_reference import (
    Dtypes,
    float64_reference,
    in_float64,
    recording_dtypes,
    widened,
)
from pilotage.compiler.accuracy.rounding_noise import rounded_differently
from pilotage.compiler.accuracy.tolerance import Tolerance
from pilotage.compiler.accuracy.trial import Trial
from pilotage.compiler.benchmarking import best_seconds, best_seconds_in_threads
from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.code import NativeCode
from pilotage.compiler.inductor import compile_graph
from pilotage.compiler.job import Job
from pilotage.compiler.target import set_precision
from pilotage.compiler.tuning import Tuning
from pilotage.monitoring.processor import memory_of
from pilotage.options.choices import Tier
from pilotage.passes.channels_last import has_channels_last, in_channels_last
from pilotage.program.program import Action

_NICENESS = 10
"""The increment of the niceness while compiling."""

_REQUIRED_GAIN = 0.98
"""A way other than the plain graph must take less than this fraction of its time."""

_SLOWDOWN_LIMIT = 1.3
"""A memory layout is not compiled if its graph takes this many times longer than the best one."""


def main(path: str) -> None:
    """Do one job."""
    threading.Thread(target=_end_with_parent, args=(Path(path).parent,), daemon=True).start()
    job = Job.read(Path(path))
    set_precision(job.precision)
    cache = NativeCache(job.cache)
    with ThreadPoolExecutor(max_workers=1) as clock:
        # Niceness is per thread: the timing thread started before keeps normal priority.
        clock.submit(threading.get_ident).result()
        os.nice(_NICENESS)
        torch.set_num_threads(job.threads)
        with cache.compiling(job.fingerprint):
            # Another process may have compiled it in the meantime.
            if cache.is_ready(job.fingerprint):
                return
            with cache.building(job.fingerprint) as folder:
                write_manifest(folder, job.fingerprint, _tune(job, folder, clock), job.about)
            cache.tidy(job.fingerprint)


def _end_with_parent(scratch: Path) -> None:
    """Exit when standard input closes: the parent holds the other end and never writes."""
    sys.stdin.read()
    shutil.rmtree(scratch, ignore_errors=True)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _tune(job: Job, folder: Path, clock: Executor) -> Tuning:
    plain = Trial(job, job.program)
    expected = _results(plain)
    exact, note = _float64_results(job)
    tolerance = Tolerance(expected, _results_rounded_differently(job, (1, 2)), plain.names(len(expected)), exact)
    ways = {Way(Tier.GRAPH, channels_last=False): plain}
    problems: list[str] = []
    if has_channels_last(job.program):
        stored = Trial(job, in_channels_last(job.program))
        if _runs(stored, problems):
            ways[Way(Tier.GRAPH, channels_last=True)] = stored
    seconds = _measure(ways, job, clock)
    best = min(seconds.values())
    for way in list(ways):
        if seconds[way] > best * _SLOWDOWN_LIMIT:
            continue
        compiled = _compiled(ways[way], job, folder / str(way.channels_last), problems)
        if compiled is not None:
            ways[Way(Tier.COMPILED, way.channels_last)] = compiled
    right = _agreeing(ways, tolerance, job, problems)
    seconds = _measure(right, job, clock)
    chosen = _choose(seconds, job)
    _keep(chosen, folder)
    return Tuning(
        tier=chosen.tier,
        channels_last=chosen.channels_last,
        seconds={str(way): value for way, value in seconds.items()},
        reason="; ".join(problems),
        note=note,
    )


def _float64_results(job: Job) -> tuple[list[Tensor] | None, str]:
    """The results in float64, or None; and a note on what could not be computed."""
    needed, free = _bytes_in_float64(job), _free_bytes(job)
    if needed > free:
        sizes = f"it needs about {needed >> 20} MiB, and {free >> 20} MiB are free"
        return None, f"results were not compared with float64: {sizes}"
    dtypes: Dtypes = {}
    problems: dict[str, str] = {}
    learned = {action: recording_dtypes(graph, dtypes) for action, graph in _graphs(job).items()}
    exact = {action: float64_reference(graph, dtypes, problems) for action, graph in _graphs(job).items()}
    try:
        _results(Trial(job, job.program, learned))
        wide = replace(job, inputs=[widened(each) for each in job.inputs])
        found = _results(Trial(wide, in_float64(job.program), exact))
    except (RuntimeError, TypeError, ValueError) as error:
        return None, f"results were not compared with float64: {_first_line(error)}"
    if problems:
        why = "; ".join(f"{name} ({reason})" for name, reason in problems.items())
        return found, f"not computed in float64 for the comparison: {why}"
    return found, ""


def _graphs(job: Job) -> dict[Action, GraphModule]:
    return {
        action: computation.graph
        for action, computation in job.program.computations.items()
        if computation.graph is not None
    }


def _bytes_in_float64(job: Job) -> int:
    """The estimated memory of a float64 run, from the peak memory so far."""
    if job.device.type == "cpu":
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    else:
        taken = torch.get_device_module(job.device).max_memory_allocated(job.device)
    halves = {torch.float16, torch.bfloat16}
    kept = {each.dtype for each in (*job.program.inputs, *job.program.layout.parameters.values())}
    return int(taken) * (4 if kept & halves or job.program.autocast in halves else 2)


def _free_bytes(job: Job) -> int:
    if job.device.type == "cpu":
        return memory_of()[1]
    device = torch.get_device_module(job.device)
    free, _ = device.mem_get_info(job.device)
    return int(free + device.memory_reserved(job.device) - device.memory_allocated(job.device))


def _agreeing(ways: Mapping[Way, Trial], tolerance: Tolerance, job: Job, problems: list[str]) -> dict[Way, Trial]:
    """The ways that agree with the graph; before one is rejected, more runs with noise widen the tolerance."""

    def objections_to(asked: Iterable[Way]) -> dict[Way, str]:
        found = {way: tolerance.objection(_results(ways[way].fresh_copy())) for way in asked}
        return {way: why for way, why in found.items() if why}

    objections = objections_to(ways)
    if objections:
        tolerance.widen(_results_rounded_differently(job, (3, 4, 5, 6)))
        objections = objections_to(objections)
    problems += [f"{way} does not agree with the graph: {why}" for way, why in objections.items()]
    return {way: trial for way, trial in ways.items() if way not in objections}


def _results_rounded_differently(job: Job, seeds: Sequence[int]) -> Iterator[list[Tensor]]:
    return (_results(_trial_with_noise(job, seed)) for seed in seeds)


def _trial_with_noise(job: Job, seed: int) -> Trial:
    tf32 = job.device.type == "cuda" and (job.precision["matmul"] != "highest" or job.precision["convolution TF32"])
    calls: dict[Action, Callable[..., list[Tensor]]] = {}
    for action, computation in job.program.computations.items():
        assert computation.graph is not None
        calls[action] = rounded_differently(computation.graph, seed, tf32=tf32)
    return Trial(job, job.program, calls)


def _runs(trial: Trial, problems: list[str]) -> bool:
    """Whether all kernels support the memory layout."""
    try:
        trial.run()
    except RuntimeError as error:
        problems.append(f"channels last: {_first_line(error)}")
        return False
    return True


def _compiled(trial: Trial, job: Job, folder: Path, problems: list[str]) -> Trial | None:
    """The trial with compiled code; None if the compiler or its code fails."""
    try:
        for action, computation in trial.program.computations.items():
            assert computation.graph is not None
            compile_graph(computation.graph, trial.arguments(action), folder / action.value, job.device)
        calls = {action: NativeCode(folder / action.value, job.device) for action in trial.program.computations}
        compiled = Trial(job, trial.program, calls)
        compiled.run()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        problems.append(_first_line(error))
        return None
    return compiled


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running the program."""

    tier: Tier
    channels_last: bool

    def __str__(self) -> str:
        return f"{self.tier.value}, channels last" if self.channels_last else self.tier.value


def _measure(ways: Mapping[Way, Trial], job: Job, clock: Executor) -> dict[Way, float]:
    runs = {str(way): trial.run for way, trial in ways.items()}
    if job.device.type == "cpu":
        seconds = clock.submit(best_seconds_in_threads, runs, job.threads).result()
    else:
        record = job.device.type == "cuda" and all(trial.can_be_recorded for trial in ways.values())
        seconds = best_seconds(runs, job.device, record=record)
    return {way: seconds[str(way)] for way in ways}


def _choose(seconds: Mapping[Way, float], job: Job) -> Way:
    """The fastest way; the plain graph if nothing gains enough and compiled code is not required."""
    plain = Way(Tier.GRAPH, channels_last=False)
    compiled = [way for way in seconds if way.tier is Tier.COMPILED]
    if job.must_compile and compiled:
        return min(compiled, key=seconds.__getitem__)
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest if seconds[fastest] < _REQUIRED_GAIN * seconds[plain] else plain


def _keep(chosen: Way, folder: Path) -> None:
    """Keep only the chosen code in the folder."""
    for stored in (False, True):
        built = folder / str(stored)
        if chosen.tier is Tier.COMPILED and chosen.channels_last == stored:
            for part in list(built.iterdir()):
                part.rename(folder / part.name)
        shutil.rmtree(built, ignore_errors=True)


def _results(trial: Trial) -> list[Tensor]:
    torch.manual_seed(0)
    outputs = trial.run()
    return [tensor.detach().clone() for tensor in (*outputs, *trial.state_tensors())]


if __name__ == "__main__":
    main(sys.argv[1])
