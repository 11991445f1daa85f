"""DLRM, and CosmicTagger's network A21."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.twelve.subject import ADAM, SGD, Subject


class Recommendation(nn.Module):
    """DLRM: tables of categories, a perceptron for numbers, and products of all pairs."""

    def __init__(self, tables: int, rows: int, width: int, numbers: int = 13) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.numbers = nn.Sequential(nn.Linear(numbers, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", pairs)
        self.last = nn.Sequential(
            nn.Linear(width + pairs.shape[1], 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, numbers: Tensor, categories: Tensor, clicks: Tensor) -> Tensor:
        """The loss of clicks."""
        dense = self.numbers(numbers)
        found = [table(categories[:, number, None]) for number, table in enumerate(self.tables)]
        vectors = torch.stack([dense, *found], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        scores = self.last(torch.cat([dense, products], 1))[:, 0]
        return functional.binary_cross_entropy_with_logits(scores, clicks)


class LossOnly(nn.Module):
    """CosmicTagger's training step without its metrics as a result."""

    def __init__(self, step: nn.Module) -> None:
        super().__init__()
        self.step = step

    def forward(self, image: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        _, loss = self.step(image, label)
        return loss


def _recommendation(batch: int, **sizes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    categories = torch.randint(0, sizes["rows"], (batch, sizes["tables"]))
    return Recommendation(**sizes), (torch.randn(batch, 13), categories, torch.randint(0, 2, (batch,)).float())


def _a21(batch: int, size: tuple[int, int], **changes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    from cosmictagger.configuration.choices import LossBalanceScheme
    from cosmictagger.configuration.network import A21
    from cosmictagger.networks.uresnet import build
    from cosmictagger.training.step import TrainingStep

    image = torch.rand(batch, 3, *size) * (torch.rand(batch, 3, *size) < 0.02)
    network = build(replace(A21, **changes))
    return LossOnly(TrainingStep(network, LossBalanceScheme.focal)), (image, torch.randint(0, 3, (batch, 3, *size)))


def _a21_of_torch(batch: int, size: tuple[int, int], **changes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A21 whose planes are normalised one by one, as in the original program; changes this process."""
    from cosmictagger.networks import blocks

    blocks.normalize_planes = _normalize_planes
    return _a21(batch, size, **changes)


def _normalize_planes(
    x: Tensor,
    shift: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    planes: int,
    slope: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, None]:
    """As `cosmictagger.networks.plane_norm.normalize_planes`."""
    parts = [torch.native_batch_norm(each, weight, bias, None, None, True, 0.0, eps) for each in x.chunk(planes)]
    values, means, inverses = zip(*parts, strict=True)
    y, mean, inverse = torch.cat(values), torch.stack(means), torch.stack(inverses)
    y = y if residual is None else y + residual
    return functional.leaky_relu(y, slope), mean if shift is None else mean + shift, inverse.pow(-2) - eps, None


OTHERS = {
    "DLRM, 26 tables of 100,000 x 64, batch 2048": Subject(
        _recommendation,
        SGD,
        {"batch": 2048, "tables": 26, "rows": 100_000, "width": 64},
        {"batch": 4, "tables": 3, "rows": 20, "width": 4},
        autocast=False,
    ),
    "A21, 8 x 640 x 1024": Subject(
        _a21,
        ADAM,
        {"batch": 8, "size": (640, 1024)},
        {
            "batch": 1,
            "size": (16, 16),
            "depth": 2,
            "n_initial_filters": 2,
            "bottleneck_deepest": 4,
            "blocks_per_layer": 1,
            "blocks_deepest_layer": 1,
        },
        make_for_peers=_a21_of_torch,
    ),
}
