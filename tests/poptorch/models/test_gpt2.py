"""GPT-2 whose loss is computed in parts of the sequence, so that the scores of all tokens never exist at once."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = pytest.mark.long

VOCABULARY, LENGTH, WIDTH, HEADS, PARTS = 53, 16, 16, 2, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("bias", torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool)), persistent=False)
        self.register_buffer("masked_bias", torch.tensor(-1e4), persistent=False)

    def forward(self, states):
        count, length, _ = states.shape
        parts = self.c_attn(self.ln_1(states)).split(WIDTH, dim=2)
        query, key, value = (part.view(count, length, HEADS, -1).transpose(1, 2) for part in parts)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        scores = torch.where(self.bias[:length, :length], scores, self.masked_bias.to(scores.dtype))
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(count, length, WIDTH)
        states = states + self.c_proj(mixed)
        return states + self.mlp(self.ln_2(states))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        tokens, labels = tokens[:, :-1], tokens[:, 1:].long()
        states = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            states = poptorch.recomputationCheckpoint(block(states))
        states = self.ln_f(states)
        total, right = 0.0, 0.0
        for part, wanted in zip(states.chunk(PARTS, dim=1), labels.chunk(PARTS, dim=1), strict=True):
            scores = self.lm_head(part).reshape(-1, VOCABULARY)
            total = total + functional.cross_entropy(scores, wanted.reshape(-1), reduction="sum")
            right = right + (scores.argmax(-1) == wanted.reshape(-1)).sum()
        count = labels.numel()
        return right / count, poptorch.identity_loss(total / count, reduction="none")


def optimizers(model, *, eagerly=False):
    kind = torch.optim.AdamW if eagerly else poptorch.optim.AdamW
    return kind(model.parameters(), lr=0.01, betas=(0.9, 0.95), eps=1e-6, weight_decay=0.1)


def test_a_loss_computed_in_parts_trains_as_in_eager_pytorch(trains_like_eager):
    torch.manual_seed(2)
    options = poptorch.Options().deviceIterations(2)
    options.Training.gradientAccumulation(2)
    options._Popart.set("autoRecomputation", 3)
    same = [torch.randint(0, VOCABULARY, (2 * 2 * 2, LENGTH + 1))[:, : LENGTH + 1]]
    losses, _ = trains_like_eager(GPT2(), [same] * 3, options, optimizers, tolerance=2e-5)
    assert losses[-1] < losses[0] - 0.2


def test_the_parts_add_up_to_the_loss_of_the_whole():
    torch.manual_seed(3)
    model, tokens = GPT2(), torch.randint(0, VOCABULARY, (2, LENGTH + 1))
    states = model.wte(tokens[:, :-1]) + model.wpe(torch.arange(LENGTH))
    for block in model.blocks:
        states = block(states)
    whole = functional.cross_entropy(model.lm_head(model.ln_f(states)).transpose(1, 2), tokens[:, 1:])
    torch.testing.assert_close(model(tokens)[-1], whole)
