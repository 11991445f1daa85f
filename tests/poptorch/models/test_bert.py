"""BERT pretraining: masked tokens and next sentences, over a pipeline, with groups of parameters and a schedule."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = pytest.mark.long

VOCABULARY, LENGTH, WIDTH, MASKED = 61, 12, 16, 3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def heads(self, states):
        return states.view(*states.shape[:2], 2, WIDTH // 2).permute(0, 2, 1, 3)

    def forward(self, states, mask):
        query, key, value = (self.heads(part(states)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / (WIDTH // 2) ** 0.5 + mask
        mixed = (scores.softmax(-1) @ value).permute(0, 2, 1, 3).reshape(states.shape)
        return self.out(mixed)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, states, mask):
        states = self.first_norm(states + self.attention(states, mask))
        states = self.second_norm(states + self.feed_forward(states))
        return poptorch.recomputationCheckpoint(states)


class BertForPretraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.kinds = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(2, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.register_buffer("position_ids", torch.arange(LENGTH).unsqueeze(0))
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.pooler, self.next_sentence = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2)
        self.transform, self.transform_norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.decoder = nn.Linear(WIDTH, VOCABULARY)
        self.decoder.weight = self.tokens.weight
        for number, layer in enumerate(self.layers):
            poptorch.BeginBlock(layer, f"Encoder{number}", ipu_id=number)
        poptorch.BeginBlock(self.pooler, "Heads", ipu_id=1)

    def forward(self, tokens, attention, kinds, places, labels, is_next):
        with poptorch.Block("Embedding", ipu_id=0):
            states = self.tokens(tokens) + self.kinds(kinds) + self.positions(self.position_ids)
            states = self.norm(states)
            mask = (1.0 - attention[:, None, None, :].to(states.dtype)) * -10000.0
        for layer in self.layers:
            states = layer(states, mask)
        pooled = torch.tanh(self.pooler(states[:, 0]))
        chosen = torch.gather(states, 1, places.long().unsqueeze(-1).expand(-1, -1, WIDTH))
        scores = self.decoder(self.transform_norm(functional.gelu(self.transform(chosen))))
        masked = functional.cross_entropy(scores.view(-1, VOCABULARY), labels.view(-1).long(), ignore_index=0)
        following = functional.cross_entropy(self.next_sentence(pooled), is_next.view(-1).long())
        return masked, following, poptorch.identity_loss(masked + following, reduction="none")


def batch(count):
    tokens = torch.randint(1, VOCABULARY, (count, LENGTH), dtype=torch.int32)
    attention = (torch.arange(LENGTH) < torch.randint(6, LENGTH + 1, (count, 1))).int()
    kinds = (torch.arange(LENGTH) >= LENGTH // 2).int().expand(count, -1).contiguous()
    places = torch.stack([torch.randperm(LENGTH)[:MASKED] for _ in range(count)]).int()
    labels = torch.gather(tokens, 1, places.long())
    labels[:, -1] = 0
    return tokens, attention, kinds, places, labels, torch.randint(0, 2, (count,), dtype=torch.int32)


def optimizers(model, *, eagerly=False):
    kept = [parameter for name, parameter in model.named_parameters() if "norm" in name or name.endswith("bias")]
    decayed = [parameter for parameter in model.parameters() if not any(parameter is each for each in kept)]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": kept, "weight_decay": 0.0}]
    if eagerly:
        return torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-6)
    return poptorch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-6, loss_scaling=64.0)


def test_pretraining_over_a_pipeline_equals_eager_pytorch(trains_like_eager):
    torch.manual_seed(1)
    options = poptorch.Options()
    options.setExecutionStrategy(poptorch.PipelinedExecution(poptorch.AutoStage.SameAsIpu))
    options.Training.gradientAccumulation(4)
    options.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Mean)
    model, same = BertForPretraining(), batch(4 * 3)
    losses, training = trains_like_eager(model, [same] * 4, options, optimizers, tolerance=2e-5)
    assert losses[-1] < losses[0] - 0.1
    assert training.isCompiled()
    assert model.decoder.weight is model.tokens.weight
