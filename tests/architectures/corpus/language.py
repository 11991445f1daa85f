"""Language models."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.attention import HEADS, WIDTH, Attention, perceptron
from corpus.case import ADAGRAD, ADAM, ADAMW, MOMENTUM, Case, tokens

WORDS, LENGTH = 32, 8


def next_words(scores: Tensor, words: Tensor) -> Tensor:
    """The loss of predicted words."""
    return functional.cross_entropy(scores.flatten(0, 1), words.flatten())


class RMSNorm(nn.Module):
    """Normalisation without a mean, in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Normalised values."""
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).type_as(x)


class GPT2(nn.Module):
    """Causal attention with a buffer as its mask, dropout, and words that share weights with the result."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.first, self.second, self.norm = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.mixed, self.last, self.perceptron = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), perceptron()
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        count, length = x.shape
        h = functional.dropout(self.words(x) + self.places(torch.arange(length, device=x.device)), 0.1, self.training)
        q, k, v = (
            each.view(count, length, HEADS, -1).transpose(1, 2) for each in self.mixed(self.first(h)).split(WIDTH, 2)
        )
        scores = (q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5).masked_fill(~self.mask, float("-inf"))
        read = functional.dropout(scores.softmax(-1), 0.1, self.training) @ v
        h = h + self.last(read.transpose(1, 2).reshape(count, length, -1))
        h = h + self.perceptron(self.second(h))
        return next_words(functional.linear(self.norm(h), self.words.weight), y)


class BERT(nn.Module):
    """Masked words, segments, padding, and a head with GELU and normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.segments = nn.Embedding(WORDS, WIDTH, padding_idx=0), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, 0.1, "gelu", batch_first=True)
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))
        self.pooled = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 2))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss of the masked words and of the next sentence."""
        h = self.norm(self.words(x) + self.segments((torch.arange(LENGTH, device=x.device) >= 4).long()))
        h = self.layer(h, src_key_padding_mask=torch.zeros_like(x, dtype=torch.bool))
        hidden = torch.where(x % 3 == 0, y, -100)
        lost = functional.cross_entropy(self.head(h).flatten(0, 1), hidden.flatten(), ignore_index=-100)
        return lost + functional.cross_entropy(self.pooled(h[:, 0]), y[:, 0] % 2)


class T5(nn.Module):
    """Encoder and decoder with a bias for relative positions in buckets, and no scale in attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.buckets = nn.Embedding(WORDS, WIDTH), nn.Embedding(4, HEADS)
        self.norms = nn.ModuleList(RMSNorm() for _ in range(4))
        self.mixers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(12))
        self.wide, self.narrow = nn.Linear(WIDTH, 32, bias=False), nn.Linear(32, WIDTH, bias=False)

    def attend(self, number: int, x: Tensor, source: Tensor, *, causal: bool) -> Tensor:
        """What each word reads."""
        query, key, value, last = self.mixers[4 * number : 4 * number + 4]
        q, k, v = (
            layer(each).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer, each in ((query, x), (key, source), (value, source))
        )
        places = torch.arange(LENGTH, device=x.device)
        distance = places[None] - places[:, None]
        bucket = torch.where(
            distance.abs() < 2, distance.abs(), (distance.abs().float().log2().long() + 1).clamp(max=3)
        )
        scores = q @ k.transpose(-2, -1) + self.buckets(bucket).permute(2, 0, 1)
        if causal:
            scores = scores + torch.full((LENGTH, LENGTH), float("-inf"), device=x.device).triu(1)
        return last((scores.float().softmax(-1).type_as(scores) @ v).transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        source = self.words(x)
        given = self.norms[0](source)
        source = source + self.attend(0, given, given, causal=False)
        source = source + self.narrow(functional.relu(self.wide(self.norms[1](source))))
        h = self.words(functional.pad(y[:, :-1], (1, 0)))
        given = self.norms[2](h)
        h = h + self.attend(1, given, given, causal=True)
        h = h + self.attend(2, self.norms[3](h), source, causal=False)
        return next_words((h * WIDTH**-0.5) @ self.words.weight.t(), y)


def rotated(x: Tensor) -> Tensor:
    """Rotary positions."""
    half = x.shape[-1] // 2
    places, waves = (torch.arange(count, device=x.device) for count in (x.shape[-2], half))
    angles = torch.outer(places.float(), 10000 ** (-waves / half))
    cosine, sine = (torch.cat([each, each], -1) for each in (angles.cos(), angles.sin()))
    one, other = x.chunk(2, -1)
    return x * cosine + torch.cat([-other, one], -1) * sine


class Llama(nn.Module):
    """Rotary positions, keys and values shared by heads, SwiGLU; Mixtral has experts in its place."""

    def __init__(self, experts: int = 0) -> None:
        super().__init__()
        self.words, self.result = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.norms = nn.ModuleList(RMSNorm() for _ in range(3))
        self.query, self.last = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.pair = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Parameter(torch.randn(max(1, experts), WIDTH, 24) * 0.1) for _ in range(2))
        self.down = nn.Parameter(torch.randn(max(1, experts), 24, WIDTH) * 0.1)
        self.router = nn.Linear(WIDTH, experts, bias=False) if experts else None

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        count, length = x.shape
        h = self.words(x)
        given = self.norms[0](h)
        q = rotated(self.query(given).view(count, length, HEADS, -1).transpose(1, 2))
        k, v = self.pair(given).view(count, length, 2, 1, -1).permute(2, 0, 3, 1, 4)
        k, v = rotated(k).repeat_interleave(HEADS, 1), v.repeat_interleave(HEADS, 1)
        read = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.last(read.transpose(1, 2).reshape(count, length, -1))
        h = h + self.experts_of(self.norms[1](h))
        return next_words(self.result(self.norms[2](h)).float(), y)

    def experts_of(self, x: Tensor) -> Tensor:
        """The perceptron, or the two best experts of each word."""
        inner = functional.silu(torch.einsum("btw,ewi->btei", x, self.gate)) * torch.einsum("btw,ewi->btei", x, self.up)
        found = torch.einsum("btei,eiw->btew", inner, self.down)
        if self.router is None:
            return found.squeeze(2)
        best, which = self.router(x).softmax(-1).topk(2, -1)
        best = best / best.sum(-1, keepdim=True)
        return (found.gather(2, which[..., None].expand(-1, -1, -1, x.shape[-1])) * best[..., None]).sum(2)


class Switch(nn.Module):
    """Experts with a fixed capacity: words are sorted to them by scattering, and loads are balanced by a loss."""

    def __init__(self, experts: int = 4, capacity: int = 6) -> None:
        super().__init__()
        self.experts, self.capacity = experts, capacity
        self.words, self.router = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, experts)
        self.weight = nn.Parameter(torch.randn(experts, WIDTH, WIDTH) * 0.1)
        self.result = nn.Linear(WIDTH, WORDS)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        h = self.words(x).flatten(0, 1)
        chances = self.router(h).softmax(-1)
        chance, expert = chances.max(-1)
        chosen = functional.one_hot(expert, self.experts)
        place = ((chosen.cumsum(0) * chosen).sum(-1) - 1).clamp(max=self.capacity)
        slots = torch.zeros(self.experts, self.capacity + 1, WIDTH).index_put((expert, place), h)
        found = torch.bmm(slots, self.weight)[expert, place] * chance[:, None] * (place < self.capacity)[:, None]
        balance = self.experts * (chosen.float().mean(0) * chances.mean(0)).sum()
        return functional.cross_entropy(self.result(h + found), y.flatten()) + 0.01 * balance


class BigBirdLike(nn.Module):
    """A sliding window of attention by unfolding keys, with ALiBi."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.attention, self.result = nn.Embedding(WORDS, WIDTH), Attention(), nn.Linear(WIDTH, WORDS)
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        h = self.words(x)
        slopes = -torch.tensor([0.5, 0.25])[:, None, None]
        distance = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]).abs()
        h = h + self.attention(h, (slopes * distance)[None])
        near = functional.pad(self.key(h), (0, 0, 2, 0)).unfold(1, 3, 1)
        weights = torch.einsum("btw,btwn->btn", self.query(h), near).div(4).softmax(-1)
        return next_words(self.result(h + torch.einsum("btn,btwn->btw", weights, near)), y)


LANGUAGE = {
    "GPT-2": Case(GPT2, tokens, ADAMW),
    "BERT": Case(BERT, tokens, ADAMW),
    "T5": Case(T5, tokens, ADAGRAD),
    "Llama": Case(Llama, tokens, ADAMW),
    "Mixtral": Case(lambda: Llama(4), tokens, ADAMW),
    "Switch Transformer": Case(Switch, tokens, ADAM),
    "sliding window attention": Case(BigBirdLike, tokens, MOMENTUM),
}
