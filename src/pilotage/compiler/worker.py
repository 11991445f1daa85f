"""The compiling process: ``python -m pilotage.compiler.worker JOB``.

It times the captured program in each memory layout, compiles the good ones, and checks the compiled code against the
graph. The first code that is right and faster is stored in the cache at once. At the end everything is timed again, and
the fastest way replaces it. It exits when its parent does.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
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
from pilotage.compiler.accuracy.tolerance import LOUD, Tolerance
from pilotage.compiler.accuracy.trial import Trial
from pilotage.compiler.attempts import compile_without_failing_changes
from pilotage.compiler.benchmarking import best_seconds, best_seconds_in_threads
from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.changes import BLOCK_SIZES, FUSED_BATCH_NORM, JOINED_KERNELS
from pilotage.compiler.code import NativeCode
from pilotage.compiler.failures import described
from pilotage.compiler.job import CompileJob
from pilotage.compiler.stopwatch import Stopwatch
from pilotage.compiler.target import set_precision
from pilotage.compiler.toolchain import known_toolchain
from pilotage.compiler.tuning import Tuning
from pilotage.execution.host_memory import keep_freed_memory
from pilotage.monitoring.processor import memory_of
from pilotage.options.choices import Tier
from pilotage.passes.channels_last import has_channels_last, in_channels_last
from pilotage.program.program import Action

_NICENESS = 10
"""The increment of the niceness while compiling."""

_REQUIRED_GAIN = 0.98
"""A way other than the plain graph must take less than this fraction of its time."""

Publish = Callable[[Tuning, Path | None], None]
"""Stores a tuning, with the folder of its code if there is some."""

_SLOWDOWN_LIMIT = 1.3
"""A memory layout whose graph takes this many times longer than the best one is compiled only if that one fails."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running the program."""

    tier: Tier
    channels_last: bool
    is_quick: bool = False
    """Whether few block sizes were tried."""

    def __str__(self) -> str:
        return self.tier.value + ", channels last" * self.channels_last + ", quickly" * self.is_quick


PLAIN = Way(Tier.GRAPH, channels_last=False)
"""The graph as captured."""


def main(path: str) -> None:
    """Do one job."""
    threading.Thread(target=_end_with_parent, args=(Path(path).parent,), daemon=True).start()
    job = CompileJob.read(Path(path))
    set_precision(job.precision)
    # As in the process that will run the program, so that it is timed under the same conditions.
    keep_freed_memory()
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
            with known_toolchain(Path(path).parent / "toolchain"):
                _tune(job, Path(path).parent / "code", clock, partial(_publish, cache, job))
            cache.tidy(job.fingerprint)


def _publish(cache: NativeCache, job: CompileJob, tuning: Tuning, code: Path | None) -> None:
    """Store a way of running the program in the cache, in place of an earlier one."""
    cache.forget(job.fingerprint)
    with cache.building(job.fingerprint) as folder:
        for part in () if code is None else code.iterdir():
            shutil.copytree(part, folder / part.name, copy_function=shutil.copyfile)
        write_manifest(folder, job.fingerprint, tuning, job.about)


def _end_with_parent(scratch: Path) -> None:
    """Exit when standard input closes: the parent holds the other end and never writes."""
    sys.stdin.read()
    shutil.rmtree(scratch, ignore_errors=True)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _tune(job: CompileJob, scratch: Path, clock: Executor, publish: Publish) -> None:
    """Publish the first code that is right and faster than the graph, then the fastest way, if that is another one."""
    watch = Stopwatch()
    with watch.part("first run"):
        plain = Trial(job, job.program)
        expected = _results(plain)
    with watch.part("float64"):
        exact, note = _float64_results(job)
    with watch.part("rounding"):
        noisy = _results_rounded_differently(job, (1, 2))
        tolerance = Tolerance(expected, noisy, plain.names(len(expected)), exact)
    problems: list[str] = []
    builds: dict[Way, Build] = {}

    def published(chosen: Way, seconds: Mapping[Way, float]) -> Way:
        build = builds.get(chosen)
        tuning = Tuning(
            tier=chosen.tier,
            channels_last=chosen.channels_last,
            seconds={str(way): value for way, value in seconds.items()},
            reason="; ".join(problems),
            note=note,
            dropped=() if build is None else build.dropped,
            parts=watch.seconds,
        )
        publish(tuning, None if build is None else build.folder)
        return chosen

    graphs = {PLAIN: plain}
    with watch.part("layouts of the graph"):
        stored = _in_channels_last(job, problems)
        if stored is not None:
            graphs[Way(Tier.GRAPH, channels_last=True)] = stored
        candidates = _candidates(graphs, job, clock)
        right = _agreeing(graphs, tolerance, job, problems)
    first: Way | None = None
    while candidates:
        candidate = candidates.pop(0)
        with watch.part(str(candidate.way)):
            made = _compiled(candidate.way, candidate.trial, job, scratch, problems, candidate.without)
        with watch.part(f"comparing {candidate.way}"):
            build = _right_build(made, tolerance, job, scratch, problems)
        if build is None:
            continue
        way = candidate.way
        builds[way], right[way] = build, build.trial
        candidates = [each for each in candidates if not each.is_slow]
        if first is None and candidates:
            with watch.part("timing"):
                seconds = _measure({PLAIN: plain, way: build.trial}, job, clock)
            first = published(way, seconds) if _choose(seconds, job) == way else None
    with watch.part("timing"):
        seconds = _measure(right, job, clock)
    chosen = _choose(seconds, job)
    if chosen != first:
        published(chosen, seconds)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to compile."""

    way: Way
    trial: Trial
    """The program in the layout of this way."""

    without: tuple[str, ...] = ()
    """Our changes to leave out."""

    is_slow: bool = False
    """Whether the graph in this layout is so slow that it is compiled only if nothing before it is right."""


def _candidates(graphs: Mapping[Way, Trial], job: CompileJob, clock: Executor) -> list[Candidate]:
    """What to compile, in this order: the layout whose graph is faster comes first.

    On a card it is first compiled without trying many block sizes.
    """
    seconds = _measure(graphs, job, clock) if len(graphs) > 1 else dict.fromkeys(graphs, 0.0)
    limit = min(seconds.values()) * _SLOWDOWN_LIMIT
    candidates = [
        Candidate(Way(Tier.COMPILED, way.channels_last), graphs[way], is_slow=seconds[way] > limit)
        for way in sorted(graphs, key=seconds.__getitem__)
    ]
    if job.device.type == "cuda" and not job.must_compile:
        quick = replace(candidates[0], way=replace(candidates[0].way, is_quick=True), without=(BLOCK_SIZES,))
        candidates.insert(0, quick)
    return candidates


def _float64_results(job: CompileJob) -> tuple[list[Tensor] | None, str]:
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
        return None, f"results were not compared with float64: {described(error)}"
    if problems:
        why = "; ".join(f"{name} ({reason})" for name, reason in problems.items())
        return found, f"not computed in float64 for the comparison: {why}"
    return found, ""


def _graphs(job: CompileJob) -> dict[Action, GraphModule]:
    return {
        action: computation.graph
        for action, computation in job.program.computations.items()
        if computation.graph is not None
    }


def _bytes_in_float64(job: CompileJob) -> int:
    """The estimated memory of a float64 run, from the peak memory so far."""
    if job.device.type == "cpu":
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    else:
        taken = torch.get_device_module(job.device).max_memory_allocated(job.device)
    halves = {torch.float16, torch.bfloat16}
    kept = {each.dtype for each in (*job.program.inputs, *job.program.layout.parameters.values())}
    return int(taken) * (4 if kept & halves or job.program.autocast in halves else 2)


def _free_bytes(job: CompileJob) -> int:
    if job.device.type == "cpu":
        return memory_of()[1]
    device = torch.get_device_module(job.device)
    free, _ = device.mem_get_info(job.device)
    return int(free + device.memory_reserved(job.device) - device.memory_allocated(job.device))


def _agreeing(
    ways: Mapping[Way, Trial], tolerance: Tolerance, job: CompileJob, problems: list[str]
) -> dict[Way, Trial]:
    """The ways that agree with the graph; before one is rejected, more runs with noise widen the tolerance."""

    def objections_to(asked: Iterable[Way]) -> dict[Way, str]:
        found = {way: tolerance.objection(_results(ways[way].fresh_copy())) for way in asked}
        return {way: why for way, why in found.items() if why}

    objections = objections_to(ways)
    if objections:
        tolerance.widen(_results_rounded_differently(job, (3, 4, 5, 6)))
        objections = objections_to(objections)
    if objections:
        tolerance.look_for_jumps(_results_rounded_differently(job, (7, 8, 9, 10), amplitude=LOUD))
        objections = objections_to(objections)
    problems += [f"{way} does not agree with the graph: {why}" for way, why in objections.items()]
    return {way: trial for way, trial in ways.items() if way not in objections}


def _results_rounded_differently(
    job: CompileJob, seeds: Sequence[int], amplitude: float = 1.0
) -> Iterator[list[Tensor]]:
    return (_results(_trial_with_noise(job, seed, amplitude)) for seed in seeds)


def _trial_with_noise(job: CompileJob, seed: int, amplitude: float) -> Trial:
    tf32 = job.device.type == "cuda" and (job.precision["matmul"] != "highest" or job.precision["convolution TF32"])
    calls: dict[Action, Callable[..., list[Tensor]]] = {}
    for action, computation in job.program.computations.items():
        assert computation.graph is not None
        calls[action] = rounded_differently(computation.graph, seed, tf32=tf32, amplitude=amplitude)
    return Trial(job, job.program, calls)


def _right_build(
    build: Build | None, tolerance: Tolerance, job: CompileJob, scratch: Path, problems: list[str]
) -> Build | None:
    """Code that agrees with the graph, compiled again without our changes if it does not; None if there is none."""
    if build is None or _agreeing({build.way: build.trial}, tolerance, job, problems):
        return build
    for suspects in _suspects(build.made):
        plain = _compiled(build.way, build.trial, job, scratch, problems, suspects)
        if plain is not None and _agreeing({build.way: plain.trial}, tolerance, job, problems):
            why = f"{build.way} did not agree with the graph; it was compiled without {', '.join(suspects)}"
            return replace(plain, dropped=(*plain.dropped, why))
    return None


def _suspects(made: Sequence[str]) -> Iterator[list[str]]:
    """Which of our changes to leave out of code that does not agree with the graph, one attempt after the other."""
    if FUSED_BATCH_NORM in made:
        yield [FUSED_BATCH_NORM]
    all_of_them = [name for name in made if name != JOINED_KERNELS]
    if all_of_them and all_of_them != [FUSED_BATCH_NORM]:
        yield all_of_them


def _in_channels_last(job: CompileJob, problems: list[str]) -> Trial | None:
    """The program with images in channels-last format; None if it has none, or if a kernel does not support it."""
    if not has_channels_last(job.program):
        return None
    try:
        trial = Trial(job, in_channels_last(job.program))
        trial.run()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        problems.append(f"The layout 'channels last' is left out: {described(error)}")
        return None
    return trial


@dataclass(frozen=True, slots=True)
class Build:
    """Compiled code of a program."""

    way: Way
    trial: Trial
    made: tuple[str, ...]
    """Our changes that the compilation has made."""

    dropped: tuple[str, ...]
    """A line for each change that was left out because of an error."""

    folder: Path
    """Where the code of each action is."""


def _compiled(
    way: Way, trial: Trial, job: CompileJob, scratch: Path, problems: list[str], without: Collection[str] = ()
) -> Build | None:
    """The trial with compiled code; None if the compiler or its code fails."""
    place = scratch / str(way)
    made: dict[str, None] = {}
    dropped: list[str] = []
    try:
        for action, computation in trial.program.computations.items():
            assert computation.graph is not None
            done = compile_without_failing_changes(
                computation.graph, trial.arguments(action), place / action.value, job.device, without
            )
            made |= dict.fromkeys(done.made)
            dropped += [f"{way}, {action.value}: {line}" for line in done.dropped]
        calls = {action: NativeCode(place / action.value, job.device) for action in trial.program.computations}
        compiled = Trial(job, trial.program, calls)
        compiled.run()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        problems.append(f"{way}: {described(error)}")
        return None
    return Build(way, compiled, tuple(made), tuple(dropped), place)


def _measure(ways: Mapping[Way, Trial], job: CompileJob, clock: Executor) -> dict[Way, float]:
    runs = {str(way): trial.run for way, trial in ways.items()}
    if job.device.type == "cpu":
        seconds = clock.submit(best_seconds_in_threads, runs, job.threads).result()
    else:
        record = job.device.type == "cuda" and all(trial.can_be_recorded for trial in ways.values())
        seconds = best_seconds(runs, job.device, record=record)
    return {way: seconds[str(way)] for way in ways}


def _choose(seconds: Mapping[Way, float], job: CompileJob) -> Way:
    """The fastest way; the plain graph if nothing gains enough and compiled code is not required."""
    compiled = [way for way in seconds if way.tier is Tier.COMPILED]
    if job.must_compile and compiled:
        return min(compiled, key=seconds.__getitem__)
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest if seconds[fastest] < _REQUIRED_GAIN * seconds[PLAIN] else PLAIN


def _results(trial: Trial) -> list[Tensor]:
    torch.manual_seed(0)
    outputs = trial.run()
    return [tensor.detach().clone() for tensor in (*outputs, *trial.state_tensors())]


def _run(path: str) -> int:
    """Do one job; returns the exit status. The last line of standard error describes an error."""
    try:
        main(path)
    except Exception as error:
        traceback.print_exc()
        # The last lines of a traceback may be advice, as in errors of CUDA and of Inductor.
        print(described(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1]))
