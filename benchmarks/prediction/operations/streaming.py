"""Operations that memory limits: elementwise ones, lists of tensors, copies, losses, embeddings."""

# ruff: noqa: B023 - every function runs before its loop continues

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.prediction.operations.calibration import HALF, SINGLE, Calibration, Row


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
