"""Searches for the fastest correct way to run a program.

It times the captured program in each memory layout, compiles the good ones, and checks the compiled code against the
graph. The first code that is correct and faster is published at once. At the end everything is timed again, and the
fastest way replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from pilotage.compiler.accuracy.agreement import agreeing, float64_results, results, results_rounded_differently
from pilotage.compiler.accuracy.tolerance import Tolerance
from pilotage.compiler.accuracy.trial import Trial
from pilotage.compiler.changes import BLOCK_SIZES, FUSED_BATCH_NORM, JOINED_KERNELS
from pilotage.compiler.failures import described
from pilotage.compiler.job import CompileJob
from pilotage.compiler.tuning import Tuning
from pilotage.compiler.worker.stopwatch import Stopwatch
from pilotage.compiler.worker.ways import PLAIN, Build, Way, choose, compiled, measure
from pilotage.options.choices import Tier
from pilotage.passes.channels_last import has_channels_last, in_channels_last

Publish = Callable[[Tuning, Path | None], None]
"""Stores a tuning, with the folder of its code if it has any."""

_SLOWDOWN_LIMIT = 1.3
"""A memory layout whose graph takes this many times longer than the best one is compiled only if that one fails."""


def search(job: CompileJob, scratch: Path, clock: Executor, publish: Publish) -> None:
    """Publish the first code that is correct and faster than the graph, then the fastest way, if that is another."""
    watch = Stopwatch()
    with watch.part("first run"):
        plain = Trial(job, job.program)
        expected = results(plain)
    with watch.part("float64"):
        exact, note = float64_results(job)
    with watch.part("rounding"):
        noisy = results_rounded_differently(job, (1, 2))
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
        right = agreeing(graphs, tolerance, job, problems)
    first: Way | None = None
    while candidates:
        candidate = candidates.pop(0)
        with watch.part(str(candidate.way)):
            made = compiled(candidate.way, candidate.trial, job, scratch, problems, candidate.without)
        with watch.part(f"comparing {candidate.way}"):
            build = _right_build(made, tolerance, job, scratch, problems)
        if build is None:
            continue
        way = candidate.way
        builds[way], right[way] = build, build.trial
        candidates = [each for each in candidates if not each.is_slow]
        if first is None and candidates:
            with watch.part("timing"):
                seconds = measure({PLAIN: plain, way: build.trial}, job, clock)
            first = published(way, seconds) if choose(seconds, job) == way else None
    with watch.part("timing"):
        seconds = measure(right, job, clock)
    chosen = choose(seconds, job)
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
    """Whether the graph in this layout is so slow that it is compiled only if nothing before it is correct."""


def _candidates(graphs: Mapping[Way, Trial], job: CompileJob, clock: Executor) -> list[Candidate]:
    """What to compile, in this order: the layout whose graph is faster comes first.

    On a card it is first compiled without trying many block sizes.
    """
    seconds = measure(graphs, job, clock) if len(graphs) > 1 else dict.fromkeys(graphs, 0.0)
    limit = min(seconds.values()) * _SLOWDOWN_LIMIT
    candidates = [
        Candidate(Way(Tier.COMPILED, way.channels_last), graphs[way], is_slow=seconds[way] > limit)
        for way in sorted(graphs, key=seconds.__getitem__)
    ]
    if job.device.type == "cuda" and not job.must_compile:
        quick = replace(candidates[0], way=replace(candidates[0].way, is_quick=True), without=(BLOCK_SIZES,))
        candidates.insert(0, quick)
    return candidates


def _right_build(
    build: Build | None, tolerance: Tolerance, job: CompileJob, scratch: Path, problems: list[str]
) -> Build | None:
    """Code that agrees with the graph, compiled again without our changes if it does not; None if there is none."""
    if build is None or agreeing({build.way: build.trial}, tolerance, job, problems):
        return build
    for suspects in _suspects(build.made):
        plain = compiled(build.way, build.trial, job, scratch, problems, suspects)
        if plain is not None and agreeing({build.way: plain.trial}, tolerance, job, problems):
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
