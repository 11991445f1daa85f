"""Times that do not depend on the amount of data: kernels, calls, copies to the card; and kept workspaces."""

# ruff: noqa: B023 - every function runs before its loop continues

from __future__ import annotations

import ctypes
import time
from statistics import median

import torch
from torch.nn import functional

import pilotage
from benchmarks.prediction.operations.calibration import HALF, SINGLE, Calibration


def launches(run: Calibration) -> None:
    """The shortest kernels in a row, dependent on each other, inside of one CUDA graph."""
    x = run.make(16)
    run.note(lambda: x.add_(1.0), name="in place, 16 elements", repeats=500)
    y = run.make(1024)
    run.note(lambda: y.mul_(1.0), name="in place, 1024 elements", repeats=500)
    a, b = run.make(16, 16), run.make(16, 16)
    run.note(lambda: a @ b, name="product 16 x 16", repeats=500)


def workspaces(run: Calibration) -> None:
    """What libraries keep on a stream after their first call there."""
    if run.device != "cuda":
        return
    for dtype in (SINGLE, HALF):
        a, bias = run.make(512, 512, dtype=dtype), run.make(512, dtype=dtype)
        images, kernel = run.make(8, 64, 28, 28, dtype=dtype), run.make(64, 64, 3, 3, dtype=dtype)
        for name, call in (
            ("product", lambda: a @ a),
            ("product with bias", lambda: torch.addmm(bias, a, a)),
            ("convolution", lambda: functional.conv2d(images, kernel)),
        ):
            stream = torch.cuda.Stream()
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            with torch.cuda.stream(stream):
                call()
            torch.cuda.synchronize()
            kept = torch.cuda.memory_allocated() - before
            run.rows.append({"group": "workspaces", "name": name, "kind": str(dtype), "kept": kept})


def calls(run: Calibration) -> None:
    """The time of a call of the smallest program, and copying a batch into pinned memory."""
    if run.device != "cuda":
        return
    module = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    trainer = pilotage.training(module, optimizer, loss=functional.mse_loss, backend="cuda", tier="graph", check="off")
    x = torch.ones(2, 1, device="cuda")
    found = []
    for _ in range(200):
        begin = time.perf_counter()
        trainer(x, x)
        found.append(time.perf_counter() - begin)
    run.rows.append({"group": "calls", "name": "the smallest program", "seconds": median(found[20:])})
    trainer.destroy()
    for size in (2**16, 2**20, 2**24):
        plain, pinned = torch.ones(size, dtype=torch.uint8), torch.empty(size, dtype=torch.uint8, pin_memory=True)
        ctypes.memmove(pinned.data_ptr(), plain.data_ptr(), size)
        begin = time.perf_counter()
        for _ in range(10):
            ctypes.memmove(pinned.data_ptr(), plain.data_ptr(), size)
        seconds = (time.perf_counter() - begin) / 10
        run.rows.append({"group": "calls", "name": "into pinned memory", "bytes": size, "seconds": seconds})


def host_copies(run: Calibration) -> None:
    """Copies between the host and the card, and the time of an empty call."""
    if run.device != "cuda":
        return
    for size in (2**12, 2**16, 2**20, 2**24, 2**27):
        here, pinned = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8)
        pinned = pinned.pin_memory()
        plain = torch.empty(size, dtype=torch.uint8)
        for name, target, source in (
            ("to the card, pinned", here, pinned),
            ("to the host, pinned", pinned, here),
            ("to the card, pageable", here, plain),
        ):
            target.copy_(source)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(10):
                target.copy_(source, non_blocking=True)
                torch.cuda.current_stream().synchronize()
            run.rows.append(
                {"group": "host copies", "name": name, "bytes": size, "seconds": (time.perf_counter() - begin) / 10}
            )
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
    x.add_(1.0)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(10):
            x.add_(1.0)
    graph.replay()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(100):
        graph.replay()
        torch.cuda.current_stream().synchronize()
    run.rows.append(
        {"group": "host copies", "name": "graph of 10 kernels", "seconds": (time.perf_counter() - begin) / 100}
    )
