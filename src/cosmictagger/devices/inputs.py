"""Batches as tensors on a device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cosmictagger.data.events import AnyBatch, Batch, PaddedBatch

PLANES = 3


def tensors(batch: AnyBatch, device: torch.device) -> tuple[Tensor, ...]:
    """Images (float32) and labels (uint8), both (N, 3, H, W), on a device; then event labels and vertices, if known."""
    return (*_images(batch, device), *truth_tensors(batch, device))


def truth_tensors(batch: AnyBatch, device: torch.device) -> tuple[Tensor, ...]:
    """Event labels and vertices on a device, if known."""
    truths = () if batch.truths is None else (batch.truths.event_label, batch.truths.vertex)
    return tuple(torch.from_numpy(each).to(device) for each in truths)


def joined_tensors(batches: Sequence[AnyBatch], device: torch.device) -> list[Tensor]:
    """The concatenated tensors of several batches; a single batch is not copied."""
    columns = list(zip(*(tensors(batch, device) for batch in batches), strict=True))
    return [column[0] if len(column) == 1 else torch.cat(column) for column in columns]


def _images(batch: AnyBatch, device: torch.device) -> tuple[Tensor, Tensor]:
    if not isinstance(batch, Batch):
        index = torch.from_numpy(batch.index).to(device, non_blocking=True)
        charge = torch.from_numpy(batch.charge).to(device, non_blocking=True)
        label = torch.from_numpy(batch.label).to(device, non_blocking=True)
        if isinstance(batch, PaddedBatch):
            return scatter_padded(batch.shape[1:], index, charge), scatter_padded(batch.shape[1:], index, label)
        return _scattered(batch.shape, index, charge), _scattered(batch.shape, index, label)
    image, label = torch.from_numpy(batch.image).to(device), torch.from_numpy(batch.label).to(device)
    return planes_first(image), planes_first(label)


def planes_first(image: Tensor) -> Tensor:
    """(N, 3, H, W), also from (N, H, W, 3)."""
    return image if image.shape[1] == PLANES else image.movedim(-1, 1).contiguous()


def scatter_padded(shape: Sequence[int], index: Tensor, values: Tensor) -> Tensor:
    """Scatter filled pixels (N, pixels) into images; a repeated pixel has the same value each time."""
    flat = torch.zeros(index.shape[0], math.prod(shape), dtype=values.dtype, device=values.device)
    return flat.scatter_(1, index.long(), values).view(-1, *shape)


def _scattered(shape: tuple[int, ...], index: Tensor, values: Tensor) -> Tensor:
    """Scatter filled pixels, each given once, into images."""
    flat = torch.zeros(math.prod(shape), dtype=values.dtype, device=values.device)
    return flat.index_copy_(0, index, values).view(shape)
