"""Microbenchmarks of single operations on one device, and the constants of its model that follow from them.

    python -m benchmarks.prediction.calibrate --device cuda --json calibration.json

Every measurement is written to the file as soon as it is made. `pilotage.prediction.devices` describes the constants.
"""

# ruff: noqa: B023 - every function runs before its loop goes on

from __future__ import annotations

import argparse
import ctypes
import json
import math
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

import pilotage
from benchmarks.prediction.fitting import constants_of, lines_of
from benchmarks.prediction.timing import seconds_of, workspace_of

HALF, SINGLE = torch.bfloat16, torch.float32

Row = dict[str, Any]
Shape = TypeVar("Shape")


def _size_of(shape: Any) -> float:
    return float(shape) if isinstance(shape, int) else math.prod(max(1.0, float(each)) for each in shape)


class Calibration:
    """Collects measurements within a time limit for each group."""

    def __init__(self, device: str, path: Path | None, scale: float) -> None:
        self.device = device
        self.scale = scale
        self.rows: list[Row] = []
        self._path = path
        self._group, self._until = "", 0.0
        self._start = time.perf_counter()

    @contextmanager
    def group(self, name: str, seconds: float) -> Iterator[None]:
        """Measure a group of operations; measurements after its time limit are left out."""
        self._group, self._until = name, time.perf_counter() + seconds * self.scale
        before = len(self.rows)
        try:
            yield
        except Exception as error:  # one group that fails must not end the others
            print(f"{name} failed: {error!r}", flush=True)
        finally:
            taken = time.perf_counter() - self._start
            print(f"{name}: {len(self.rows) - before} measurements, {taken:.0f} s since the start", flush=True)
            self.write()

    def note(self, operation: Callable[[], Any], *, memory: bool = False, repeats: int = 20, **facts: Any) -> None:
        """Measure one operation."""
        if time.perf_counter() > self._until:
            return
        row: Row = {"group": self._group, **facts}
        try:
            row["seconds"] = seconds_of(operation, self.device, repeats)
            if memory:
                row["allocated"] = workspace_of(operation, self.device)
        except Exception as error:  # one operation that fails must not end the others
            row["error"] = str(error)[:200]
        self.rows.append(row)

    def some(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """All shapes, or the smallest one to try the script."""
        return shapes if self.scale == 1.0 else [min(shapes, key=_size_of)]

    def make(self, *shape: int, dtype: torch.dtype = SINGLE) -> Tensor:
        """A random tensor."""
        return torch.randn(shape, device=self.device, dtype=torch.float32).to(dtype)

    def write(self) -> None:
        """Write all measurements so far."""
        if self._path is not None:
            self._path.write_text(json.dumps({"machine": machine_of(self.device), "rows": self.rows}, indent=0))


def machine_of(device: str) -> Row:
    """What was measured."""
    if device != "cuda":
        return {"device": device, "name": platform.processor() or platform.machine(), "torch": torch.__version__}
    facts = torch.cuda.get_device_properties(0)
    return {
        "device": device,
        "name": facts.name,
        "memory": facts.total_memory,
        "processors": facts.multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "context": facts.total_memory - torch.cuda.mem_get_info()[0],
        "triton": _has_triton(),
    }


def _has_triton() -> bool:
    import importlib.util

    return importlib.util.find_spec("triton") is not None


@contextmanager
def matrix_products_in(tf32: bool) -> Iterator[None]:
    """Allow float32 products of 10 bits, or not."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def products(run: Calibration, sizes: list[tuple[int, int, int]]) -> None:
    """Products of matrices: C (m, n) = A (m, k) B (k, n), with B stored as a layer's weight is, and the other ways."""
    for kind, dtype, tf32 in (("float32", SINGLE, False), ("tf32", SINGLE, True), ("bfloat16", HALF, False)):
        with matrix_products_in(tf32):
            for m, n, k in run.some(sizes):
                if kind == "float32" and m * n * k > 2**35:
                    continue
                a, b, bt = run.make(m, k, dtype=dtype), run.make(k, n, dtype=dtype), run.make(n, k, dtype=dtype)
                at = run.make(k, m, dtype=dtype)
                run.note(lambda: a @ bt.t(), kind=kind, m=m, n=n, k=k, way="nt", memory=True)
                if m * n * k >= 2**24:
                    run.note(lambda: a @ b, kind=kind, m=m, n=n, k=k, way="nn")
                    run.note(lambda: at.t() @ b, kind=kind, m=m, n=n, k=k, way="tn")


def batched_products(run: Calibration) -> None:
    """Many small products at once, as in attention."""
    for kind, dtype, tf32 in (("float32", SINGLE, False), ("tf32", SINGLE, True), ("bfloat16", HALF, False)):
        with matrix_products_in(tf32):
            for batch, m, n, k in run.some(
                ((96, 512, 512, 64), (96, 512, 64, 512), (384, 128, 128, 64), (32, 64, 64, 64))
            ):
                a, b = run.make(batch, m, k, dtype=dtype), run.make(batch, k, n, dtype=dtype)
                run.note(lambda: torch.bmm(a, b), kind=kind, batch=batch, m=m, n=n, k=k)


CONVOLUTIONS = (
    # batch, channels in, channels out, size of the image, kernel, stride, groups
    (32, 3, 64, 224, 7, 2, 1),
    (32, 64, 64, 56, 3, 1, 1),
    (32, 64, 256, 56, 1, 1, 1),
    (32, 256, 64, 56, 1, 1, 1),
    (32, 256, 128, 56, 1, 1, 1),
    (32, 128, 128, 56, 3, 2, 1),
    (32, 256, 512, 56, 1, 2, 1),
    (32, 128, 128, 28, 3, 1, 1),
    (32, 128, 512, 28, 1, 1, 1),
    (32, 256, 256, 14, 3, 1, 1),
    (32, 1024, 256, 14, 1, 1, 1),
    (32, 512, 512, 7, 3, 1, 1),
    (32, 512, 2048, 7, 1, 1, 1),
    (16, 1, 5, 28, 3, 1, 1),
    (16, 5, 12, 13, 5, 1, 1),
    (8, 32, 32, 112, 3, 1, 1),
    (8, 16, 16, 256, 3, 1, 1),
    (8, 8, 8, 512, 3, 1, 1),
    (3, 16, 16, 512, 3, 1, 1),
    (3, 32, 32, 256, 3, 1, 1),
    (3, 64, 64, 128, 3, 1, 1),
    (3, 128, 128, 64, 3, 1, 1),
    (3, 1, 16, 512, 5, 1, 1),
    (3, 256, 256, 32, 5, 1, 1),
    (32, 3, 384, 224, 16, 16, 1),
    (32, 128, 128, 28, 3, 1, 128),
    (128, 64, 64, 32, 3, 1, 1),
    (128, 256, 256, 8, 3, 1, 1),
    (6, 8, 8, 640, 3, 1, 1),
    (6, 24, 24, 320, 3, 1, 1),
    (6, 40, 40, 160, 3, 1, 1),
    (6, 72, 72, 80, 3, 1, 1),
    (6, 16, 16, 320, 3, 1, 1),
    (6, 8, 8, 320, 3, 1, 1),
    (6, 8, 3, 640, 1, 1, 1),
)


def convolutions(run: Calibration, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Forward, and backward with both gradients, in both memory layouts for half precision."""
    torch.backends.cudnn.benchmark = True
    for kind, dtype, layout in (
        ("bfloat16", HALF, torch.channels_last),
        ("tf32", SINGLE, torch.channels_last),
        ("bfloat16", HALF, torch.contiguous_format),
        ("tf32", SINGLE, torch.contiguous_format),
    ):
        name = "last" if layout is torch.channels_last else "first"
        for batch, into, out, size, kernel, stride, groups in run.some(shapes):
            facts: Row = {"kind": kind, "layout": name, "batch": batch, "in": into, "out": out, "size": size}
            facts |= {"kernel": kernel, "stride": stride, "groups": groups}
            padding = kernel // 2 if stride < kernel else 0
            x = run.make(batch, into, size, size, dtype=dtype).contiguous(memory_format=layout)
            w = run.make(out, into // groups, kernel, kernel, dtype=dtype).contiguous(memory_format=layout)
            geometry = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)
            forward = lambda: torch.ops.aten.convolution(x, w, None, *geometry)  # noqa: E731
            run.note(forward, way="forward", memory=True, repeats=10, **facts)
            gradient = torch.ones_like(forward())
            for way, mask in (("both", [True, True, False]), ("weight", [False, True, False])):
                if way == "weight" and into > 3:
                    continue
                backward = lambda: torch.ops.aten.convolution_backward(gradient, x, w, None, *geometry, mask)  # noqa: E731
                run.note(backward, way=way, memory=True, repeats=10, **facts)


def elementwise(run: Calibration) -> None:
    """Operations that are limited by memory, on the same tensors and on ever new ones."""
    for elements in run.some((2**10, 2**14, 2**17, 2**20, 2**22, 2**24, 2**26, 2**28)):
        for dtype in (SINGLE, HALF):
            size = elements * dtype.itemsize
            number = max(1, min(8, (2**29) // (3 * size)))
            sets = [[run.make(elements, dtype=dtype) for _ in range(2)] for _ in range(number)]
            state = {"turn": 0}

            def next_set() -> list[Tensor]:
                state["turn"] += 1
                return sets[state["turn"] % len(sets)]

            facts: Row = {"elements": elements, "bytes": size}
            kind = str(dtype).removeprefix("torch.")
            a, b = sets[0]
            for name, call in (
                ("add", lambda x, y: x + y),
                ("gelu", lambda x, y: functional.gelu(x)),
                ("relu", lambda x, y: torch.relu(x)),
                ("add_", lambda x, y: x.add_(y)),
                ("cast", lambda x, y: x.to(HALF if x.dtype == SINGLE else SINGLE)),
                ("fill", lambda x, y: x.fill_(1.0)),
                ("sum", lambda x, y: x.sum()),
                ("dropout", lambda x, y: torch.native_dropout(x, 0.1, True)),
            ):
                run.note(lambda: call(a, b), name=name, kind=kind, cold=False, **facts)
                if number > 1 and name in ("add", "relu") and elements >= 2**20:
                    run.note(lambda: call(*next_set()), name=name, kind=kind, cold=True, **facts)


def many_tensors(run: Calibration) -> None:
    """Operations on lists of tensors, as optimizers use them."""
    for count, elements in run.some(((8, 2**10), (160, 2**12), (160, 2**17), (300, 2**20), (20, 2**24))):
        parts = [[run.make(elements) for _ in range(count)] for _ in range(3)]
        facts: Row = {"count": count, "elements": elements}
        run.note(lambda: torch._foreach_add_(parts[0], parts[1], alpha=0.1), name="add", **facts)
        run.note(lambda: torch._foreach_mul_(parts[0], 0.9), name="mul", **facts)
        run.note(lambda: torch._foreach_addcdiv_(parts[0], parts[1], parts[2], value=0.1), name="addcdiv", **facts)
        run.note(lambda: torch._foreach_sqrt(parts[2]), name="sqrt", **facts)


def mixed_lists(run: Calibration) -> None:
    """Operations on lists of different types: a kernel for each tensor."""
    for count, elements in run.some(((8, 2**10), (150, 2**12), (150, 2**17), (20, 2**22))):
        narrow = [run.make(elements, dtype=HALF) for _ in range(count)]
        wide = [run.make(elements) for _ in range(count)]
        scalar = torch.ones((), device=run.device)
        facts: Row = {"count": count, "elements": elements}
        run.note(lambda: torch._foreach_mul_(narrow, scalar), name="mul by a number", **facts)
        run.note(lambda: torch._foreach_add_(wide, narrow), name="add", **facts)
        run.note(lambda: torch._foreach_addcdiv_(narrow, wide, wide, value=0.1), name="addcdiv", **facts)


def copies(run: Calibration) -> None:
    """Copies into another order as attention makes them, joining tensors, and losses over images."""
    for dtype in (SINGLE, HALF):
        kind = str(dtype).removeprefix("torch.")
        for batch, length, heads, width in run.some(
            ((8, 512, 12, 64), (32, 197, 6, 64), (8, 512, 16, 64), (32, 128, 4, 64))
        ):
            x = run.make(batch, heads, length, width, dtype=dtype)
            facts: Row = {"kind": kind, "elements": x.numel(), "shape": list(x.shape)}
            run.note(lambda: x.transpose(1, 2).contiguous(), name="heads", **facts)
            run.note(lambda: torch.stack([x, x, x]), name="stack", **facts)
            turned = x.transpose(1, 2)
            run.note(lambda: torch.stack([turned, turned, turned]), name="stack of views", **facts)
            run.note(lambda: torch.cat([x, x], 1), name="cat", **facts)
        for size in run.some((128, 320, 640)):
            scores = run.make(2, 3, size, size, dtype=torch.float32)
            labels = torch.zeros(2, size, size, dtype=torch.long, device=run.device)
            facts = {"kind": kind, "elements": scores.numel(), "shape": list(scores.shape)}
            run.note(lambda: torch.log_softmax(scores, 1), name="log_softmax over channels", **facts)
            run.note(lambda: functional.nll_loss(scores, labels), name="loss over pixels", **facts)
        for batch, channels, size in run.some(((32, 64, 112), (6, 16, 320))):
            x = run.make(batch, channels, size, size, dtype=dtype)
            facts = {"kind": kind, "elements": x.numel(), "shape": list(x.shape)}
            y, places = functional.max_pool2d(x, 2, return_indices=True)
            run.note(
                lambda: torch.ops.aten.max_pool2d_with_indices_backward(
                    y, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places
                ),
                name="max_pool backward",
                **facts,
            )


def normalizations(run: Calibration) -> None:
    """Batch, group and layer normalisation, softmax and pooling, forward and backward."""
    for dtype in (SINGLE, HALF):
        kind = str(dtype).removeprefix("torch.")
        for batch, channels, size in run.some(
            ((32, 64, 112), (32, 256, 56), (32, 512, 28), (32, 2048, 7), (16, 12, 9), (3, 16, 512))
        ):
            x = run.make(batch, channels, size, size, dtype=dtype)
            weight, bias = torch.ones(channels, device=run.device), torch.zeros(channels, device=run.device)
            mean, variance = torch.zeros_like(bias), torch.ones_like(bias)
            facts: Row = {
                "kind": kind,
                "elements": x.numel(),
                "channels": channels,
                "shape": [batch, channels, size, size],
            }

            def forward():
                return torch.ops.aten._batch_norm_impl_index(x, weight, bias, mean, variance, True, 0.1, 1e-5, True)

            run.note(forward, name="batch_norm", way="forward", **facts)
            _, saved, inverse, reserve, index = forward()
            if run.device == "cuda" and index == 1:
                run.note(
                    lambda: torch.ops.aten.cudnn_batch_norm_backward(
                        x,
                        x,
                        weight,
                        mean,
                        variance,
                        saved,
                        inverse,
                        1e-5,
                        reserve,
                    ),
                    name="batch_norm",
                    way="backward",
                    **facts,
                )
            run.note(
                lambda: torch.ops.aten.native_batch_norm_backward(
                    x,
                    x,
                    weight,
                    mean,
                    variance,
                    saved,
                    inverse,
                    True,
                    1e-5,
                    [True, True, True],
                ),
                name="native_batch_norm",
                way="backward",
                **facts,
            )
            run.note(lambda: functional.max_pool2d(x, 2), name="max_pool", way="forward", **facts)
            run.note(lambda: functional.avg_pool2d(x, 2), name="avg_pool", way="forward", **facts)
            run.note(lambda: functional.group_norm(x, 4), name="group_norm", way="forward", **facts)
            run.note(lambda: functional.interpolate(x, scale_factor=2.0), name="upsample", way="forward", **facts)
        for rows, columns in run.some(
            ((4096, 768), (16384, 1024), (128, 1000), (4096, 50257), (98304, 512), (6304, 384))
        ):
            x = run.make(rows, columns, dtype=dtype)
            weight = run.make(columns, dtype=dtype)
            facts = {"kind": kind, "elements": x.numel(), "shape": [rows, columns]}
            y, mean, inverse = torch.native_layer_norm(x, [columns], weight, weight, 1e-5)
            run.note(
                lambda: torch.native_layer_norm(x, [columns], weight, weight, 1e-5),
                name="layer_norm",
                way="forward",
                **facts,
            )
            run.note(
                lambda: torch.ops.aten.native_layer_norm_backward(
                    y,
                    x,
                    [columns],
                    mean,
                    inverse,
                    weight,
                    weight,
                    [True, True, True],
                ),
                name="layer_norm",
                way="backward",
                **facts,
            )
            run.note(lambda: torch.log_softmax(x, 1), name="log_softmax", way="forward", **facts)
            run.note(
                lambda: torch.ops.aten._log_softmax_backward_data(y, y, 1, y.dtype),
                name="log_softmax",
                way="backward",
                **facts,
            )
            run.note(lambda: x.sum(0), name="column_sum", way="forward", **facts)
            run.note(lambda: x.sum(1), name="row_sum", way="forward", **facts)
            run.note(lambda: x.t().contiguous(), name="transpose", way="forward", **facts)


ATTENTION = (
    (8, 12, 512, 64, False),
    (8, 16, 512, 64, False),
    (4, 12, 1024, 64, True),
    (32, 6, 197, 64, False),
    (32, 16, 128, 64, False),
    (16, 4, 64, 32, False),
)


def attention(run: Calibration) -> None:
    """Fused attention, forward and backward."""
    for dtype in (SINGLE, HALF):
        kind = str(dtype).removeprefix("torch.")
        for batch, heads, length, width, causal in run.some(ATTENTION):
            q, k, v = (run.make(batch, heads, length, width, dtype=dtype).requires_grad_() for _ in range(3))
            facts: Row = {
                "kind": kind,
                "batch": batch,
                "heads": heads,
                "length": length,
                "width": width,
                "causal": causal,
            }

            def forward() -> Tensor:
                return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            run.note(lambda: forward().detach(), way="forward", memory=True, **facts)
            gradient = torch.randn_like(q)
            run.note(
                lambda: torch.autograd.grad(forward(), (q, k, v), gradient),
                way="forward and backward",
                memory=True,
                name=type(forward().grad_fn).__name__,
                **facts,
            )


def gathers(run: Calibration) -> None:
    """Reading rows of an embedding, and the gradient of it."""
    for rows, width, count in run.some(((50257, 768, 4096), (30522, 1024, 4096), (1000, 128, 2048))):
        table, places = run.make(rows, width), torch.randint(0, rows, (count,), device=run.device)
        gradient = run.make(count, width)
        facts: Row = {"rows": rows, "width": width, "count": count}
        run.note(lambda: functional.embedding(places, table), name="embedding", **facts)
        run.note(
            lambda: torch.ops.aten.embedding_dense_backward(gradient, places, rows, -1, False),
            name="embedding_backward",
            **facts,
        )


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


SIZES = [
    (16, 100, 972),
    (16, 10, 100),
    (64, 512, 512),
    (128, 1024, 1024),
    (256, 2048, 1024),
    (512, 768, 768),
    (1024, 1024, 1024),
    (2048, 512, 2048),
    (4096, 768, 768),
    (4096, 2304, 768),
    (4096, 3072, 768),
    (4096, 768, 3072),
    (4096, 1024, 1024),
    (4096, 4096, 1024),
    (4096, 1024, 4096),
    (4096, 50257, 768),
    (768, 3072, 4096),
    (1024, 4096, 4096),
    (6304, 384, 384),
    (6304, 1536, 384),
    (6304, 384, 1536),
    (8192, 8192, 8192),
    (2048, 2048, 2048),
    (16384, 1024, 1024),
    (128, 10, 512),
    (1000, 2048, 32),
    (32, 1000, 2048),
    (64, 2048, 512),
]


def main() -> None:
    """Measure everything, write the file and print the constants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tiny", action="store_true", help="a few small sizes, to try the script without a card")
    parser.add_argument("--only", default="", help="a regular expression for the names of groups")
    arguments = parser.parse_args()
    tiny = arguments.tiny
    run = Calibration(arguments.device, arguments.json, 0.999 if tiny else 1.0)
    torch.manual_seed(0)
    groups: dict[str, tuple[float, Callable[[Calibration], None]]] = {
        "launches": (5, launches),
        "workspaces": (5, workspaces),
        "calls": (5, calls),
        "host copies": (5, host_copies),
        "products": (25, lambda run: products(run, SIZES)),
        "batched products": (5, batched_products),
        "elementwise": (15, elementwise),
        "many tensors": (5, many_tensors),
        "mixed lists": (5, mixed_lists),
        "copies": (10, copies),
        "normalizations": (20, normalizations),
        "attention": (10, attention),
        "gathers": (3, gathers),
        "convolutions": (110, lambda run: convolutions(run, CONVOLUTIONS)),
    }
    for name, (seconds, measure) in groups.items():
        if re.search(arguments.only, name):
            with run.group(name, seconds):
                measure(run)
    run.write()
    print("\n".join(lines_of(constants_of(run.rows))))


if __name__ == "__main__":
    main()
