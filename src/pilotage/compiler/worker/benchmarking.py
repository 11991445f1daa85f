"""Times several ways of running the same computation, in alternation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

from pilotage.execution.memory import wait_for

Run = Callable[[], object]

_ROUNDS = 7
_SECONDS_PER_ROUND = 0.05
_MAXIMUM_STRETCH = 6
"""A round may take this many times longer if other programs use the cores."""


def best_seconds(ways: Mapping[str, Run], device: torch.device, *, record: bool = False) -> dict[str, float]:
    """The best time of each way, in seconds per run; ``record`` runs them as CUDA graphs."""
    timed = {name: _recorded(run) if record else run for name, run in ways.items()}
    rounds = [{name: _round(run, device) for name, run in timed.items()} for _ in range(_ROUNDS)]
    return {name: min(seconds[name] for seconds in rounds) for name in timed}


def best_seconds_in_threads(ways: Mapping[str, Run], threads: int) -> dict[str, float]:
    """The best time of each way on a CPU, with ``threads`` threads or one, as a run would choose.

    If other programs use the cores, threads that wait for each other may take a hundred times longer, and not all ways
    suffer equally.
    """
    found: list[dict[str, float]] = []
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        found.append(best_seconds(ways, torch.device("cpu")))
    return {name: min(seconds[name] for seconds in found) for name in ways}


def _round(run: Run, device: torch.device) -> float:
    if device.type == "cpu":
        return _best_of_single_runs(run, device)
    repeats = max(1, int(_SECONDS_PER_ROUND / max(_time(run, 1, device), 1e-6)))
    return _time(run, repeats, device)


def _best_of_single_runs(run: Run, device: torch.device) -> float:
    """The best of as many runs as fit in a round on an idle machine.

    If other programs use the cores, a series of runs never has them to itself; a single run sometimes does.
    """
    end = time.perf_counter() + _MAXIMUM_STRETCH * _SECONDS_PER_ROUND
    best, runs = _time(run, 1, device), 1
    while best * runs < _SECONDS_PER_ROUND and time.perf_counter() < end:
        best, runs = min(best, _time(run, 1, device)), runs + 1
    return best


def _time(run: Run, repeats: int, device: torch.device) -> float:
    wait_for(device)
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    wait_for(device)
    return (time.perf_counter() - start) / repeats


def _recorded(run: Run) -> Run:
    """The run recorded as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay
