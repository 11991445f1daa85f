"""Normalisations, pooling, softmax and sums, forward and backward."""

# ruff: noqa: B023 - every function runs before its loop continues

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.prediction.operations.calibration import HALF, SINGLE, Calibration, Row


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
