"""A vision transformer in two precisions: half activations with float32 weights, and both in half."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

WIDTH, HEADS, CLASSES = 16, 2, 5

TOLERANCE = 0.02
"""Half has 11 bits; sums over tens of products of numbers around 1 are off by some thousandths."""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, states):
        count, length, _ = states.shape
        query, key, value = self.qkv(self.norm1(states)).view(count, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5).softmax(-1)
        states = states + self.proj((weights @ value).transpose(1, 2).reshape(count, length, WIDTH))
        return states + self.fc2(functional.gelu(self.fc1(self.norm2(states))))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 17, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, images, labels):
        states = self.patches(images).flatten(2).transpose(1, 2)
        start = self.cls_token.to(states.dtype).expand(states.shape[0], -1, -1)
        states = torch.cat([start, states], 1) + self.positions.to(states.dtype)
        for block in self.blocks:
            states = block(states)
        scores = self.head(self.norm(states)[:, 0])
        return scores, functional.cross_entropy(scores, labels)


def optimizers(model, *, eagerly=False):
    if eagerly:
        return torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    return poptorch.optim.SGD(
        model.parameters(),
        lr=0.2,
        momentum=0.9,
        loss_scaling=128.0,
        use_combined_accum=False,
        velocity_accum_type=torch.float32,
    )


def images():
    torch.manual_seed(6)
    return [torch.randn(2 * 4, 3, 16, 16).half(), torch.randint(0, CLASSES, (2 * 4,))]


def options():
    chosen = poptorch.Options()
    chosen.Training.gradientAccumulation(2)
    chosen.Precision.setPartialsType(torch.float)
    return chosen


def as_float(tensor):
    return tensor.float() if tensor.is_floating_point() else tensor


@pytest.mark.slow
def test_half_activations_with_float_weights_train_as_float_does(trains_like_eager):
    batch = images()
    model = VisionTransformer()
    losses, training = trains_like_eager(
        model, [batch] * 4, options(), optimizers, tolerance=TOLERANCE, as_reference=as_float
    )
    assert losses[-1] < losses[0] - 0.2
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    scores, loss = training(*batch)
    assert scores.dtype == loss.dtype == torch.float16


@pytest.mark.long
def test_weights_and_activations_in_half_train_as_float_does(trains_like_eager):
    batch = images()
    model = VisionTransformer().half()
    losses, training = trains_like_eager(
        model,
        [batch] * 4,
        options(),
        optimizers,
        tolerance=TOLERANCE,
        reference=copy.deepcopy(model).float(),
        as_reference=as_float,
    )
    assert losses[-1] < losses[0] - 0.2
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float16}
    scores, _ = training(*batch)
    assert scores.dtype == torch.float16
