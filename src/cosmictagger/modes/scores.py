"""The scores of evaluated batches, and their averages over events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cosmictagger.modes.evaluation import EvaluatedBatch
from cosmictagger.training.metrics import KEYS


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchScores:
    """What is kept of a batch after its prediction was written."""

    numbers: Tensor
    """The metrics of each image of each plane, (3, N, 5)."""

    neutrino_pixels: Tensor
    """Neutrino pixels of each event, over all planes."""

    loss: float | None
    """None if the batch was padded."""

    heads: tuple[float, ...] | None
    """The metrics of the heads; None if the batch was padded."""

    @classmethod
    def of(cls, evaluated: EvaluatedBatch) -> BatchScores:
        """The scores of a batch, without its images."""
        return cls(
            numbers=evaluated.numbers,
            neutrino_pixels=evaluated.neutrino_pixels,
            loss=evaluated.loss,
            heads=evaluated.heads,
        )

    @property
    def events(self) -> int:
        """The number of events."""
        return int(self.numbers.shape[1])

    def plain(self) -> dict[str, Any]:
        """The scores as values that processes can exchange."""
        heads = None if self.heads is None else list(self.heads)
        return {"numbers": self.numbers, "pixels": self.neutrino_pixels, "loss": self.loss, "heads": heads}

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> BatchScores:
        """The scores that another process sent."""
        heads = None if values["heads"] is None else tuple(values["heads"])
        return cls(numbers=values["numbers"], neutrino_pixels=values["pixels"], loss=values["loss"], heads=heads)


def row(scores: BatchScores, keys: Sequence[str]) -> dict[str, float]:
    """A batch as a line of a table; what a padded batch has no value for is NaN."""
    missing = float("nan")
    heads = scores.heads if scores.heads is not None else (missing,) * len(keys)
    loss = missing if scores.loss is None else scores.loss
    return {**_means(scores.numbers), "loss": loss, **dict(zip(keys, heads, strict=True))}


def averages(scores: Sequence[BatchScores], *, neutrino_pixels: int = 0) -> dict[str, float]:
    """Each metric averaged over entries with enough neutrino pixels, and the loss over full batches."""
    wanted = torch.cat([each.neutrino_pixels for each in scores]) >= neutrino_pixels
    means = _means(torch.cat([each.numbers for each in scores], dim=1)[:, wanted])
    losses = [each.loss for each in scores if each.loss is not None]
    return means | ({"loss": sum(losses) / len(losses)} if losses and not neutrino_pixels else {})


def of_heads(scores: Sequence[BatchScores], keys: Sequence[str]) -> dict[str, float]:
    """The metrics of the heads, averaged over full batches."""
    rows = [each.heads for each in scores if each.heads is not None]
    columns = zip(*rows, strict=True) if rows else ()
    return {key: sum(column) / len(rows) for key, column in zip(keys, columns, strict=bool(rows))}


def _means(numbers: Tensor) -> dict[str, float]:
    """Metrics averaged over images, for each plane and over the planes."""
    per_plane = numbers.mean(1)
    every = torch.cat((per_plane.mean(0, keepdim=True), per_plane)).flatten()
    return dict(zip(KEYS, every.tolist(), strict=True))
