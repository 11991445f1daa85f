"""A Conformer for speech: two half feed-forward layers around attention and a convolution with BatchNorm, CTC loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = pytest.mark.long

FEATURES, WIDTH, HEADS, SYMBOLS = 8, 16, 2, 7


class FeedForward(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH), nn.Dropout(0.0)
        )


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.pointwise1 = nn.Conv1d(WIDTH, 2 * WIDTH, 1)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, groups=WIDTH)
        self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.pointwise2 = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, states):
        states = functional.glu(self.pointwise1(self.norm(states).transpose(1, 2)), dim=1)
        return self.pointwise2(functional.silu(self.batch_norm(self.depthwise(states)))).transpose(1, 2)


class Attention(nn.Module):
    """Attention with relative positions, whose scores are shifted into place."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.positions = nn.Linear(WIDTH, WIDTH, bias=False)
        self.content_bias = nn.Parameter(0.02 * torch.randn(HEADS, WIDTH // HEADS))
        self.position_bias = nn.Parameter(0.02 * torch.randn(HEADS, WIDTH // HEADS))

    def forward(self, states, encoding, mask):
        count, length, _ = states.shape
        parts = self.qkv(self.norm(states)).chunk(3, dim=-1)
        query, key, value = (part.view(count, length, HEADS, -1) for part in parts)
        places = self.positions(encoding).view(2 * length - 1, HEADS, -1).permute(1, 2, 0)
        content = (query + self.content_bias).transpose(1, 2) @ key.permute(0, 2, 3, 1)
        apart = (query + self.position_bias).transpose(1, 2) @ places
        apart = functional.pad(apart, (1, 0)).view(count, HEADS, 2 * length, length)[:, :, 1:]
        apart = apart.reshape(count, HEADS, length, 2 * length - 1)[..., :length]
        scores = (content + apart) / (WIDTH // HEADS) ** 0.5
        weights = scores.masked_fill(mask[:, None, None, :], -1e4).softmax(-1)
        return self.out((weights @ value.transpose(1, 2)).transpose(1, 2).reshape(count, length, WIDTH))


class ConformerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = FeedForward(), FeedForward()
        self.attention, self.convolution = Attention(), Convolution()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, states, encoding, mask):
        states = states + 0.5 * self.first(states)
        states = states + self.attention(states, encoding, mask)
        states = states + self.convolution(states)
        return self.norm(states + 0.5 * self.second(states))


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.subsampling = nn.Conv1d(FEATURES, WIDTH, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(ConformerBlock() for _ in range(2))
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def encoding(self, length):
        places = torch.arange(length - 1, -length, -1.0).unsqueeze(1)
        rates = torch.exp(torch.arange(0, WIDTH, 2) * (-9.21 / WIDTH))
        return torch.stack([torch.sin(places * rates), torch.cos(places * rates)], -1).flatten(1)

    def forward(self, sound, lengths, text, text_lengths):
        states = self.subsampling(sound.transpose(1, 2)).transpose(1, 2)
        length = states.shape[1]
        lengths = torch.div(lengths + 1, 2, rounding_mode="floor")
        mask = torch.arange(length).unsqueeze(0) >= lengths.unsqueeze(1)
        encoding = self.encoding(length)
        for block in self.blocks:
            states = block(states, encoding, mask)
        scores = self.head(states).log_softmax(-1)
        loss = functional.ctc_loss(scores.transpose(0, 1), text, lengths, text_lengths, reduction="mean")
        return scores, loss


def batch(count):
    lengths = torch.randint(17, 25, (count,))
    return [
        torch.randn(count, 24, FEATURES),
        lengths,
        torch.randint(1, SYMBOLS, (count, 4)),
        torch.randint(2, 5, (count,)),
    ]


def optimizers(model, *, eagerly=False):
    if eagerly:
        return torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-6)
    return poptorch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-6)


def test_attention_and_convolution_with_a_ctc_loss_train_as_in_eager_pytorch(trains_like_eager):
    torch.manual_seed(5)
    options = poptorch.Options().deviceIterations(2)
    model = Conformer()
    losses, _ = trains_like_eager(model, [batch(2 * 3)] * 4, options, optimizers, tolerance=5e-5)
    assert losses[-1] < 0.7 * losses[0]
    assert not torch.equal(model.blocks[0].convolution.batch_norm.running_var, torch.ones(WIDTH))
