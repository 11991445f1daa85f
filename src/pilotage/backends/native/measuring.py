"""How long each way of running the same thing takes, taking turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

Run = Callable[[], object]

_ROUNDS = 7
_SECONDS_PER_ROUND = 0.05


def best_seconds(ways: Mapping[str, Run], device: torch.device, *, record: bool = False) -> dict[str, float]:
    """The best time of each way, in seconds a run, as CUDA graphs if they can be recorded; noise hits all of them alike."""
    timed = {name: _recorded(run) if record else run for name, run in ways.items()}
    repeats = {name: max(1, int(_SECONDS_PER_ROUND / max(_time(run, 1, device), 1e-6))) for name, run in timed.items()}
    rounds = [{name: _time(run, repeats[name], device) for name, run in timed.items()} for _ in range(_ROUNDS)]
    return {name: min(seconds[name] for seconds in rounds) for name in timed}


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
