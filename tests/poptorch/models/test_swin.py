"""A Swin transformer: shifted windows, a table of relative positions, masks in buffers, merging of patches."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = pytest.mark.long

WINDOW, HEADS = 4, 2


def windows(images):
    """Images as windows: [count x windows, window x window, width]."""
    count, height, breadth, width = images.shape
    images = images.view(count, height // WINDOW, WINDOW, breadth // WINDOW, WINDOW, width)
    return images.permute(0, 1, 3, 2, 4, 5).reshape(-1, WINDOW * WINDOW, width)


def images_of(parts, height, breadth):
    count = parts.shape[0] // (height * breadth // WINDOW // WINDOW)
    parts = parts.view(count, height // WINDOW, breadth // WINDOW, WINDOW, WINDOW, -1)
    return parts.permute(0, 1, 3, 2, 4, 5).reshape(count, height, breadth, -1)


def relative_positions():
    places = torch.stack(torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij")).flatten(1)
    apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + WINDOW - 1
    return apart[..., 0] * (2 * WINDOW - 1) + apart[..., 1]


def shifted_mask(size, shift):
    """Which parts of a shifted window were neighbours before."""
    regions, number = torch.zeros(1, size, size, 1), 0
    for rows in (slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None)):
        for columns in (slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None)):
            regions[:, rows, columns] = number
            number += 1
    parts = windows(regions).squeeze(-1)
    return (parts[:, None, :] != parts[:, :, None]).float() * -100.0


class SwinBlock(nn.Module):
    def __init__(self, width, size, shift):
        super().__init__()
        self.size, self.shift = size, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.relative_position_bias_table = nn.Parameter(0.02 * torch.randn((2 * WINDOW - 1) ** 2, HEADS))
        self.register_buffer("relative_position_index", relative_positions())
        self.register_buffer("attn_mask", shifted_mask(size, shift) if shift else None)

    def attention(self, parts):
        count, length, width = parts.shape
        query, key, value = self.qkv(parts).view(count, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = query * (width // HEADS) ** -0.5 @ key.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        scores = scores + bias.view(length, length, HEADS).permute(2, 0, 1).unsqueeze(0)
        if self.attn_mask is not None:
            each = self.attn_mask.shape[0]
            scores = scores.view(count // each, each, HEADS, length, length) + self.attn_mask[None, :, None]
            scores = scores.view(count, HEADS, length, length)
        return self.proj((scores.softmax(-1) @ value).transpose(1, 2).reshape(count, length, width))

    def forward(self, states):
        count, _, width = states.shape
        images = self.norm1(states).view(count, self.size, self.size, width)
        if self.shift:
            images = torch.roll(images, shifts=(-self.shift, -self.shift), dims=(1, 2))
        images = images_of(self.attention(windows(images)), self.size, self.size)
        if self.shift:
            images = torch.roll(images, shifts=(self.shift, self.shift), dims=(1, 2))
        states = states + images.reshape(count, self.size * self.size, width)
        return states + self.mlp(self.norm2(states))


class PatchMerging(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.size = size
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, states):
        count, _, width = states.shape
        images = states.view(count, self.size, self.size, width)
        corners = [images[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.reduction(self.norm(torch.cat(corners, -1).view(count, -1, 4 * width)))


class Swin(nn.Module):
    def __init__(self, width=8, size=8):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, 2, 2)
        self.norm = nn.LayerNorm(width)
        self.stage1 = nn.Sequential(SwinBlock(width, size, 0), SwinBlock(width, size, WINDOW // 2))
        self.merge = PatchMerging(width, size)
        self.stage2 = SwinBlock(2 * width, size // 2, 0)
        self.last_norm, self.head = nn.LayerNorm(2 * width), nn.Linear(2 * width, 5)

    def forward(self, images, labels):
        states = self.norm(self.patch_embed(images).flatten(2).transpose(1, 2))
        states = self.stage2(self.merge(self.stage1(states)))
        scores = self.head(self.last_norm(states).mean(1))
        return scores, functional.cross_entropy(scores, labels, label_smoothing=0.1)


def optimizers(model, *, eagerly=False):
    kind = torch.optim.AdamW if eagerly else poptorch.optim.AdamW
    return kind(model.parameters(), lr=0.01, eps=1e-6, weight_decay=0.05)


def test_shifted_windows_train_as_in_eager_pytorch(trains_like_eager):
    torch.manual_seed(4)
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    same = [torch.randn(2 * 3, 3, 16, 16), torch.randint(0, 5, (2 * 3,))]
    losses, _ = trains_like_eager(Swin(), [same] * 4, options, optimizers, tolerance=2e-5)
    assert losses[-1] < losses[0]
