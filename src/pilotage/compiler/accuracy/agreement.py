"""Whether ways of running a program compute what its graph computes, as far as rounding allows."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

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
from pilotage.compiler.failures import described
from pilotage.compiler.job import CompileJob
from pilotage.execution.memory import free_memory
from pilotage.program.program import Action

Way = TypeVar("Way")


def results(trial: Trial) -> list[Tensor]:
    """The outputs and the new state of one run, with random draws from seed 0."""
    torch.manual_seed(0)
    outputs = trial.run()
    return [tensor.detach().clone() for tensor in (*outputs, *trial.state_tensors())]


def float64_results(job: CompileJob) -> tuple[list[Tensor] | None, str]:
    """The results in float64, or None; and a note on what could not be computed."""
    needed, free = _bytes_in_float64(job), free_memory(job.device)
    if needed > free:
        sizes = f"it needs about {needed >> 20} MiB, and {free >> 20} MiB are free"
        return None, f"results were not compared with float64: {sizes}"
    dtypes: Dtypes = {}
    problems: dict[str, str] = {}
    learned = {action: recording_dtypes(graph, dtypes) for action, graph in _graphs(job).items()}
    exact = {action: float64_reference(graph, dtypes, problems) for action, graph in _graphs(job).items()}
    try:
        results(Trial(job, job.program, learned))
        wide = replace(job, inputs={action: list(map(widened, given)) for action, given in job.inputs.items()})
        found = results(Trial(wide, in_float64(job.program), exact))
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


def agreeing(ways: Mapping[Way, Trial], tolerance: Tolerance, job: CompileJob, problems: list[str]) -> dict[Way, Trial]:
    """The ways that agree with the graph; before one is rejected, more runs with noise widen the tolerance."""

    def objections_to(asked: Iterable[Way]) -> dict[Way, str]:
        found = {way: tolerance.objection(results(ways[way].fresh_copy())) for way in asked}
        return {way: why for way, why in found.items() if why}

    objections = objections_to(ways)
    if objections:
        tolerance.widen(results_rounded_differently(job, (3, 4, 5, 6)))
        objections = objections_to(objections)
    if objections:
        tolerance.look_for_jumps(results_rounded_differently(job, (7, 8, 9, 10), amplitude=LOUD))
        objections = objections_to(objections)
    problems += [f"{way} does not agree with the graph: {why}" for way, why in objections.items()]
    return {way: trial for way, trial in ways.items() if way not in objections}


def results_rounded_differently(
    job: CompileJob, seeds: Sequence[int], amplitude: float = 1.0
) -> Iterator[list[Tensor]]:
    """The results of the graph with noise in place of rounding, one list for each seed."""
    return (results(_trial_with_noise(job, seed, amplitude)) for seed in seeds)


def _trial_with_noise(job: CompileJob, seed: int, amplitude: float) -> Trial:
    tf32 = job.device.type == "cuda" and (job.precision["matmul"] != "highest" or job.precision["convolution TF32"])
    calls: dict[Action, Callable[..., list[Tensor]]] = {}
    for action, computation in job.program.computations.items():
        assert computation.graph is not None
        calls[action] = rounded_differently(computation.graph, seed, tf32=tf32, amplitude=amplitude)
    return Trial(job, job.program, calls)
