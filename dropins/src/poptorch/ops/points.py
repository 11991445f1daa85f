"""Sampling and nearest neighbours of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from poptorch._errors import createPoptorchError
from poptorch.ops.checks import require_tensor


def fps(src: Tensor, ptr: list[int], ratio: float = 0.5, random_start: bool = False) -> Tensor:
    """Farthest-point sampling: the rows of ``src`` that lie farthest from each other, in each part of it.

    Part ``i`` is ``src[ptr[i]:ptr[i + 1]]``, and the given ratio of it is sampled, rounded up.
    """
    require_tensor("fps", "src", src)
    if not isinstance(ptr, list) or not all(isinstance(place, int) for place in ptr):
        raise createPoptorchError(f"poptorch.fps takes a list of whole numbers as ptr, not {ptr!r}.")
    if not isinstance(ratio, float | int) or not 0 < ratio <= 1:
        raise createPoptorchError(f"poptorch.fps takes a number above 0 and up to 1 as ratio, not {ratio!r}.")
    parts = max(len(ptr) - 1, 0)
    # Drawn here, so that it comes from the program's random streams.
    start = torch.rand(parts, device=src.device) if random_start else torch.zeros(parts, device=src.device)
    sampled: Tensor = torch.ops.poptorch.farthest_points(src.detach(), ptr, ratio, start)
    return sampled


def nearest(
    x: Tensor, y: Tensor, batch_x: Tensor | list[int] | None = None, batch_y: Tensor | list[int] | None = None
) -> Tensor:
    """For each row of ``x`` the number of the row of ``y`` that is nearest, among those of the same batch."""
    require_tensor("nearest", "x", x)
    require_tensor("nearest", "y", y)
    rows, others = (_measurable(points.reshape(points.shape[0], -1)) for points in (x, y))
    distances = torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist")
    if batch_x is None and batch_y is None:
        return distances.argmin(dim=1)
    batch_of_rows = _batches("batch_x", batch_x, rows)
    batch_of_others = _batches("batch_y", batch_y, others)
    apart = batch_of_rows[:, None] != batch_of_others[None, :]
    return distances.masked_fill(apart, math.inf).argmin(dim=1)


def _measurable(points: Tensor) -> Tensor:
    """Points in a type whose distances torch computes on every device: not half precision or integers."""
    return points if points.dtype in (torch.float32, torch.float64) else points.float()


def _batches(name: str, given: Any, points: Tensor) -> Tensor:
    if given is None:
        return torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    if isinstance(given, list):
        return torch.tensor(given, device=points.device)
    if isinstance(given, Tensor):
        return given
    raise createPoptorchError(f"poptorch.nearest takes a tensor or a list as {name}, not {type(given).__name__}.")


def _samples_of_parts(ptr: Sequence[int], ratio: float) -> list[int]:
    return [math.ceil((end - begin) * ratio) for begin, end in pairwise(ptr)]


@torch.library.custom_op(
    "poptorch::farthest_points",
    mutates_args=(),
    schema="(Tensor src, int[] ptr, float ratio, Tensor start) -> Tensor",
)
def _farthest_points(src: Tensor, ptr: list[int], ratio: float, start: Tensor) -> Tensor:
    sampled = [
        begin + _sampled(src[begin:end].reshape(end - begin, -1), samples, share)
        for (begin, end), samples, share in zip(pairwise(ptr), _samples_of_parts(ptr, ratio), start, strict=True)
    ]
    return torch.cat(sampled) if sampled else torch.empty(0, dtype=torch.int64, device=src.device)


@_farthest_points.register_fake
def _(src: Tensor, ptr: list[int], ratio: float, start: Tensor) -> Tensor:
    return torch.empty(sum(_samples_of_parts(ptr, ratio)), dtype=torch.int64, device=src.device)


def _sampled(points: Tensor, samples: int, share: Tensor) -> Tensor:
    """Numbers of rows, each as far as possible from those before it; ``share`` in [0, 1) says where to start."""
    chosen = torch.empty(samples, dtype=torch.int64, device=points.device)
    if samples == 0:
        return chosen
    current = (share * len(points)).long().reshape(1)
    distances = torch.full((len(points),), math.inf, dtype=points.dtype, device=points.device)
    for number in range(samples):
        chosen[number : number + 1] = current
        # Selected without reading the value, so that nothing waits for the device.
        gaps = (points - points.index_select(0, current)).square().sum(dim=1)
        distances = torch.minimum(distances, gaps)
        current = distances.argmax().reshape(1)
    return chosen
