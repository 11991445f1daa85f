"""Graphs, points, tables and games."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.case import ADAGRAD, ADAM, ADAMW, RMSPROP, SGD, Case

NODES, EDGES = 10, 24


def graph() -> list[Tensor]:
    """Features of the nodes, the ends of the edges, and classes."""
    return [torch.randn(NODES, 6), torch.randint(0, NODES, (2, EDGES)), torch.randint(0, 3, (NODES,))]


class GraphConvolution(nn.Module):
    """GCN: the mean over neighbours, weighted by degrees."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 3)

    def spread(self, x: Tensor, edges: Tensor) -> Tensor:
        """Sums over neighbours."""
        start, end = edges
        degree = torch.ones(NODES).index_add(0, end, torch.ones(EDGES))
        weight = (degree[start] * degree[end]).rsqrt()
        return torch.zeros_like(x).index_add(0, end, x[start] * weight[:, None]) + x / degree[:, None]

    def forward(self, x: Tensor, edges: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        h = functional.dropout(self.spread(self.first(x), edges).relu(), 0.5, self.training)
        return functional.cross_entropy(self.spread(self.second(h), edges), classes)


class GraphAttention(nn.Module):
    """GAT: a softmax over the edges of each node, by scattering."""

    def __init__(self) -> None:
        super().__init__()
        self.values, self.scores, self.last = nn.Linear(6, 8), nn.Linear(16, 1), nn.Linear(8, 3)

    def forward(self, x: Tensor, edges: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        start, end = edges
        h = self.values(x)
        score = functional.leaky_relu(self.scores(torch.cat([h[start], h[end]], 1))[:, 0], 0.2)
        largest = torch.full((NODES,), float("-inf")).scatter_reduce(0, end, score.detach(), "amax")
        weight = (score - largest[end]).exp()
        total = torch.zeros(NODES).scatter_add(0, end, weight)[end]
        read = torch.zeros_like(h).index_add(0, end, h[start] * (weight / total)[:, None])
        return functional.cross_entropy(self.last(functional.elu(read + h)), classes)


class MessagePassing(nn.Module):
    """GIN with normalisation, read out by graph."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
        self.weight, self.last = nn.Parameter(torch.zeros(1)), nn.Linear(12, 1)

    def forward(self, x: Tensor, edges: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        start, end = edges
        h = self.layers((1 + self.weight) * x + torch.zeros_like(x).index_add(0, end, x[start]))
        which = torch.arange(NODES) // 5
        joined = [
            torch.zeros(2, 6).scatter_reduce(0, which[:, None].expand(-1, 6), h, how, include_self=False)
            for how in ("mean", "amax")
        ]
        return functional.binary_cross_entropy_with_logits(self.last(torch.cat(joined, 1))[:, 0], classes[:2] / 2)


class Points(nn.Module):
    """PointNet: each point on its own, then the maximum over all."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.matrix, self.each, self.last = nn.Linear(8, 9), nn.Conv1d(3, 16, 1), nn.Linear(16, 4)

    def forward(self, points: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        matrix = self.matrix(self.turn(points).amax(2)).view(-1, 3, 3) + torch.eye(3)
        straight = (matrix @ matrix.transpose(1, 2) - torch.eye(3)).square().sum((1, 2)).sqrt().mean()
        found = self.last(self.each(matrix @ points).amax(2))
        return functional.nll_loss(found.log_softmax(1), classes) + 0.001 * straight


class Recommendation(nn.Module):
    """DLRM: tables of categories, a perceptron for numbers, and products of all pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20, 4, mode="sum") for _ in range(3))
        self.numbers = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU())
        self.last = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 1))
        self.register_buffer("pairs", torch.tril_indices(4, 4, -1))

    def forward(self, numbers: Tensor, categories: Tensor, clicks: Tensor) -> Tensor:
        """The loss of clicks."""
        dense = self.numbers(numbers)
        vectors = torch.stack([dense, *(table(categories[:, i]) for i, table in enumerate(self.tables))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        found = self.last(torch.cat([dense, products], 1))[:, 0]
        return functional.binary_cross_entropy_with_logits(found, clicks)


class WideAndDeep(nn.Module):
    """Linear crossed features beside a deep network."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.embedded = nn.Embedding(64, 1), nn.Embedding(20, 4)
        self.deep = nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))

    def forward(self, categories: Tensor, values: Tensor) -> Tensor:
        """The loss."""
        crossed = (categories[:, 0] * 31 + categories[:, 1] * 17) % 64
        found = self.wide(crossed) + self.deep(self.embedded(categories).flatten(1))
        return functional.smooth_l1_loss(found[:, 0], values, beta=0.5)


class ActorCritic(nn.Module):
    """Proximal policy optimization: clipped ratios, values and entropy."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
        self.policy, self.value = nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, seen: Tensor, actions: Tensor, before: Tensor, gains: Tensor) -> Tensor:
        """The loss."""
        h = self.shared(seen)
        chances = self.policy(h).log_softmax(-1)
        ratio = (chances.gather(1, actions[:, None])[:, 0] - before).exp()
        value = self.value(h)[:, 0]
        advantage = (gains - value).detach()
        clipped = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        entropy = -(chances.exp() * chances).sum(-1)
        return (-clipped - 0.01 * entropy).mean() + 0.5 * functional.mse_loss(value, gains)


class Radiance(nn.Module):
    """NeRF: points along rays, a perceptron, and transparency."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, origins: Tensor, directions: Tensor, colours: Tensor) -> Tensor:
        """The error of the colours."""
        depths = torch.linspace(0.5, 2, 6)
        points = origins[:, None] + directions[:, None] * depths[:, None]
        waves = [wave(points * 2**i) for i in range(2) for wave in (torch.sin, torch.cos)]
        found = self.layers(torch.cat([points, *waves], -1))
        opaque = 1 - torch.exp(-functional.relu(found[..., 3]) * 0.3)
        passed = torch.cumprod(torch.cat([torch.ones(len(origins), 1), 1 - opaque + 1e-10], 1), 1)[:, :-1]
        return functional.mse_loss(((opaque * passed)[..., None] * found[..., :3].sigmoid()).sum(1), colours)


class Twins(nn.Module):
    """Contrastive learning of pictures and texts with a learned temperature, as in CLIP."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures, self.texts = nn.Linear(12, 8), nn.EmbeddingBag(20, 8)
        self.temperature = nn.Parameter(torch.tensor(2.6))

    def forward(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """The loss of the right pairs."""
        one, other = (
            functional.normalize(self.pictures(pictures), dim=-1),
            functional.normalize(self.texts(texts), dim=-1),
        )
        scores = self.temperature.exp() * one @ other.t()
        right = torch.arange(len(scores))
        return (functional.cross_entropy(scores, right) + functional.cross_entropy(scores.t(), right)) / 2


TABLES = {
    "graph convolution": Case(GraphConvolution, graph, ADAM),
    "graph attention": Case(GraphAttention, graph, ADAM),
    "message passing": Case(MessagePassing, graph, ADAMW),
    "PointNet": Case(Points, lambda: [torch.randn(2, 3, 12), torch.arange(2)], ADAM),
    "DLRM": Case(
        Recommendation, lambda: [torch.randn(4, 5), torch.randint(0, 20, (4, 3, 2)), torch.arange(4) % 2 * 1.0], SGD
    ),
    "wide and deep": Case(WideAndDeep, lambda: [torch.randint(0, 20, (4, 3)), torch.randn(4)], ADAGRAD),
    "proximal policy optimization": Case(
        ActorCritic, lambda: [torch.randn(8, 4), torch.arange(8) % 3, -torch.rand(8), torch.randn(8)], RMSPROP
    ),
    "NeRF": Case(Radiance, lambda: [torch.randn(4, 3), torch.randn(4, 3), torch.rand(4, 3)], ADAM),
    "CLIP": Case(Twins, lambda: [torch.randn(4, 12), torch.randint(0, 20, (4, 5))], ADAMW),
}
