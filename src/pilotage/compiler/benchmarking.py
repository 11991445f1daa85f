"""How long each way of running the same thing takes, taking turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

Run = Callable[[], object]

_ROUNDS = 7
_SECONDS_PER_ROUND = 0.05
_PATIENCE = 6
"""How many times as long a round may take where others use the cores as well."""


def best_seconds(ways: Mapping[str, Run], device: torch.device, *, record: bool = False) -> dict[str, float]:
    """The best time of each way, in seconds a run, as CUDA graphs if they can be recorded; noise hits all of them alike."""
    timed = {name: _recorded(run) if record else run for name, run in ways.items()}
    rounds = [{name: _round(run, device) for name, run in timed.items()} for _ in range(_ROUNDS)]
    return {name: min(seconds[name] for seconds in rounds) for name in timed}


def best_seconds_in_threads(ways: Mapping[str, Run], threads: int) -> dict[str, float]:
    """The best time of each way on a processor, with so many threads or with one, as a run would choose.

    Beside other programs threads that wait for one another may take a hundred times as long, and not alike in all ways.
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
    """The best of as many runs as would fit in a round if nothing else was running.

    Beside other programs runs in a row never have the cores for themselves; a single one has them now and then.
    """
    end = time.perf_counter() + _PATIENCE * _SECONDS_PER_ROUND
    best, runs = _time(run, 1, device), 1
    while best * runs < _SECONDS_PER_ROUND and time.perf_counter() < end:
        best, runs = min(best, _time(run, 1, device)), runs + 1
    return best


def _time(run: Run, repeats: int, device: torch.device) -> float:
    _synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    _synchronize(device)
    return (time.perf_counter() - start) / repeats


def _synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()


def _recorded(run: Run) -> Run:
    """The same as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay
