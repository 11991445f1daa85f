"""How long one operation takes on a device, without the time to launch it from Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch


def seconds_of(operation: Callable[[], Any], device: str, repeats: int = 20, rounds: int = 5) -> float:
    """The seconds of one run; on a card, runs are recorded in a CUDA graph and replayed."""
    if device != "cuda":
        return _on_host(operation, rounds)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            operation()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(repeats):
            operation()
    graph.replay()
    torch.cuda.synchronize()
    found = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / 1e3 / repeats)
        if sum(found) * repeats > 0.1:
            break
    return median(found)


def _on_host(operation: Callable[[], Any], rounds: int) -> float:
    operation()
    found = []
    for _ in range(min(rounds, 3)):
        begin = time.perf_counter()
        operation()
        found.append(time.perf_counter() - begin)
    return median(found)


def workspace_of(operation: Callable[[], Any], device: str) -> int:
    """The bytes that an operation allocates at its peak, its results included; 0 without a card."""
    if device != "cuda":
        return 0
    operation()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    operation()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)
