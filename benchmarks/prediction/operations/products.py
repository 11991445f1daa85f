"""Matrix products, single and in batches, and attention."""

# ruff: noqa: B023 - every function runs before its loop continues

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.prediction.operations.calibration import HALF, SINGLE, Calibration, Row

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


@contextmanager
def matrix_products_in(tf32: bool) -> Iterator[None]:
    """Allow float32 products of 10 bits, or not."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def products(run: Calibration) -> None:
    """Products of matrices: C (m, n) = A (m, k) B (k, n), with B stored as a layer's weight is, and the other ways."""
    for kind, dtype, tf32 in (("float32", SINGLE, False), ("tf32", SINGLE, True), ("bfloat16", HALF, False)):
        with matrix_products_in(tf32):
            for m, n, k in run.some(SIZES):
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
