"""Convolutions, forward and backward, in both memory layouts."""

# ruff: noqa: B023 - every function runs before its loop continues

from __future__ import annotations

import torch

from benchmarks.prediction.operations.calibration import HALF, SINGLE, Calibration, Row

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


def convolutions(run: Calibration) -> None:
    """Forward, and backward with both gradients, in both memory layouts for half precision."""
    torch.backends.cudnn.benchmark = True
    for kind, dtype, layout in (
        ("bfloat16", HALF, torch.channels_last),
        ("tf32", SINGLE, torch.channels_last),
        ("bfloat16", HALF, torch.contiguous_format),
        ("tf32", SINGLE, torch.contiguous_format),
    ):
        name = "last" if layout is torch.channels_last else "first"
        for batch, into, out, size, kernel, stride, groups in run.some(CONVOLUTIONS):
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
