"""The ways of running a program, and which of them is the fastest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import torch

from pilotage.compiler.accuracy.trial import Trial
from pilotage.compiler.attempts import compile_without_failing_changes
from pilotage.compiler.code import NativeCode
from pilotage.compiler.failures import described
from pilotage.compiler.job import CompileJob
from pilotage.compiler.worker.benchmarking import best_seconds, best_seconds_in_threads
from pilotage.compiler.wrapper import NotSelfContained
from pilotage.options.choices import Tier
from pilotage.program.program import Action

_REQUIRED_GAIN = 0.98
"""A way other than the plain graph must take less than this fraction of its time."""


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


def compiled(
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
        fast = Trial(job, trial.program, calls)
        fast.run()
        _refuse_other_layouts(trial, fast)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        problems.append(f"{way}: {described(error)}")
        return None
    return Build(way, fast, tuple(made), tuple(dropped), place)


def _refuse_other_layouts(trial: Trial, fast: Trial) -> None:
    """Raise if compiled code keeps values for backward in another memory layout than the graph does."""
    if not {Action.FORWARD, Action.BACKWARD} <= trial.program.computations.keys():
        return
    ours, theirs = (
        [each.clone().stride() for each in way.fresh_copy().results(Action.FORWARD)] for way in (fast, trial)
    )
    if ours != theirs:
        raise NotSelfContained("forward keeps values for backward in another memory layout than in the graph")


def measure(ways: Mapping[Way, Trial], job: CompileJob, clock: Executor) -> dict[Way, float]:
    """The best time of each way; on the CPU measured in the thread of the clock, which has normal priority."""
    runs = {str(way): trial.run for way, trial in ways.items()}
    if job.device.type == "cpu":
        seconds = clock.submit(best_seconds_in_threads, runs, job.threads).result()
    else:
        record = job.device.type == "cuda" and all(trial.can_be_recorded for trial in ways.values())
        seconds = best_seconds(runs, job.device, record=record)
    return {way: seconds[str(way)] for way in ways}


def choose(seconds: Mapping[Way, float], job: CompileJob) -> Way:
    """The fastest way; the plain graph if nothing gains enough and compiled code is not required."""
    in_code = [way for way in seconds if way.tier is Tier.COMPILED]
    if job.must_compile and in_code:
        return min(in_code, key=seconds.__getitem__)
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest if seconds[fastest] < _REQUIRED_GAIN * seconds[PLAIN] else PLAIN
