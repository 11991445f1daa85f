"""Whole programs in the style of public ones, each compared with the same program in plain PyTorch."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import TensorDataset

import poptorch

pytestmark = pytest.mark.slow


def assert_same_weights(module, plain, tolerance=1e-4):
    state = {name: value.detach() for name, value in module.state_dict().items()}
    torch.testing.assert_close(state, dict(plain.state_dict()), rtol=10 * tolerance, atol=tolerance)


# Pretraining of an encoder: pipeline, LAMB, groups of weights, warm-up, losses of two tasks


class Layer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.output, self.inner, self.outer = (
            nn.Linear(size, size),
            nn.Linear(size, 2 * size),
            nn.Linear(2 * size, size),
        )
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x, mask):
        scores = self.query(x) @ self.key(x).transpose(-1, -2) / math.sqrt(x.shape[-1]) + mask
        x = self.norm1(x + self.output(torch.softmax(scores, -1) @ self.value(x)))
        return self.norm2(x + self.outer(functional.gelu(self.inner(x))))


class Encoder(nn.Module):
    def __init__(self, words: int = 20, size: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(words, size), nn.Embedding(6, size)
        self.layers = nn.ModuleList(Layer(size) for _ in range(layers))
        self.decode, self.follows = nn.Linear(size, words), nn.Linear(size, 2)
        self.decode.weight = self.embed.weight
        self.register_buffer("positions", torch.arange(6).expand(1, -1))

    def forward(self, words, mask, labels=None, follows=None):
        x = self.embed(words) + self.position(self.positions)
        mask = (1.0 - mask[:, None, :].float()) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        scores, pooled = self.decode(x), self.follows(x[:, 0])
        if labels is None:
            return scores, pooled
        masked = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=-100)
        following = functional.cross_entropy(pooled, follows)
        right = (pooled.argmax(-1) == follows).float().mean()
        return poptorch.identity_loss(masked + following, reduction="none"), masked, following, right


def lamb(model):
    def decays(name):
        return "bias" not in name and "norm" not in name

    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if decays(n)], "weight_decay": 0.01},
        {"params": [p for n, p in named if not decays(n)], "weight_decay": 0.0},
    ]
    return poptorch.optim.LAMB(groups, lr=1e-2, betas=(0.9, 0.999), loss_scaling=128.0, accum_type=torch.float32)


def test_an_encoder_is_pretrained_in_a_pipeline():
    torch.manual_seed(0)
    model = Encoder()
    plain = copy.deepcopy(model)
    poptorch.BeginBlock(model.embed, "embedding", ipu_id=0)
    for number, layer in enumerate(model.layers):
        poptorch.BeginBlock(layer, f"layer{number}", ipu_id=number)
    poptorch.BeginBlock(model.decode, "head", ipu_id=1)
    options = poptorch.Options().deviceIterations(1).autoRoundNumIPUs(True)
    options.Training.gradientAccumulation(4)
    options.setExecutionStrategy(poptorch.PipelinedExecution(poptorch.AutoStage.SameAsIpu))
    options.setAvailableMemoryProportion({"IPU0": 0.3, "IPU1": 0.3})
    options.Precision.setPartialsType(torch.half)
    options._Popart.set("scheduleNonWeightUpdateGradientConsumersEarly", True)
    options._Popart.setPatterns({"TiedGather": True, "TiedGatherAccumulate": True})
    optimizer, plain_optimizer = lamb(model), lamb(plain)
    scheduler, plain_scheduler = (
        LambdaLR(each, lambda step: min(1.0, (step + 1) / 3)) for each in (optimizer, plain_optimizer)
    )
    training = poptorch.trainingModel(model, options, optimizer=optimizer)
    words = torch.randint(0, 20, (8, 6))
    labels = words.clone()
    labels[:, ::2] = -100
    batch = (words, torch.ones(8, 6, dtype=torch.long), labels, torch.randint(0, 2, (8,)))
    for _ in range(3):
        losses = training(*batch)
        scheduler.step()
        training.setOptimizer(optimizer)
        plain_optimizer.zero_grad()
        for part in zip(*(tensor.split(2) for tensor in batch), strict=True):
            expected = plain(*part)
            (expected[0] / 4).backward()
        plain_optimizer.step()
        plain_scheduler.step()
        torch.testing.assert_close(losses, tuple(loss.detach() for loss in expected), rtol=1e-4, atol=1e-4)
    assert_same_weights(model, plain)


# Fine-tuning: replicas, accumulation, clipping, all outputs


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 5)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, images, labels=None):
        x = self.encoder(self.patches(images).flatten(2).transpose(1, 2))
        scores = self.head(x.mean(1))
        return scores if labels is None else (scores, self.loss(scores, labels))


def test_a_vision_transformer_is_trained_by_replicas_with_clipped_gradients():
    torch.manual_seed(0)
    model = Classifier()
    plain = copy.deepcopy(model)
    options = poptorch.Options().replicationFactor(2).deviceIterations(2).outputMode(poptorch.OutputMode.All)
    options.Training.gradientAccumulation(2)
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, max_grad_norm=1.0)
    plain_optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3, weight_decay=0.05)
    training = poptorch.trainingModel(model, options, optimizer)
    dataset = TensorDataset(torch.randn(32, 3, 8, 8), torch.randint(0, 5, (32,)))
    for images, labels in poptorch.DataLoader(options, dataset, batch_size=2):
        scores, losses = training(images, labels)
        assert (scores.shape, losses.shape) == ((16, 5), (8,))
        for first in (0, 4):
            plain_optimizer.zero_grad()
            for part in range(first, first + 4):
                place = slice(2 * part, 2 * part + 2)
                loss = plain(images[place], labels[place])[1]
                (loss / 4).backward()
                torch.testing.assert_close(losses[part], loss.detach(), rtol=1e-4, atol=1e-5)
            nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            plain_optimizer.step()
    assert_same_weights(model, plain)


# Two wrappers that take turns


def test_a_generator_and_its_critic_take_turns():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    plain_generator, plain_critic = copy.deepcopy(generator), copy.deepcopy(critic)

    class Criticise(nn.Module):
        def __init__(self, generator, critic):
            super().__init__()
            self.generator, self.critic, self.loss = generator, critic, nn.BCEWithLogitsLoss()

        def forward(self, noise, real):
            made = self.generator(noise).detach()
            scores = torch.cat([self.critic(real), self.critic(made)])
            return self.loss(scores, torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)]))

    class Deceive(Criticise):
        def forward(self, noise):
            scores = self.critic(self.generator(noise))
            return self.loss(scores, torch.ones_like(scores))

    def adam(module):
        return torch.optim.Adam(module.parameters(), lr=1e-3)

    criticising = poptorch.trainingModel(Criticise(generator, critic), optimizer=adam(critic))
    deceiving = poptorch.trainingModel(Deceive(generator, critic), optimizer=adam(generator))
    steps = [
        (Criticise(plain_generator, plain_critic), adam(plain_critic)),
        (Deceive(plain_generator, plain_critic), adam(plain_generator)),
    ]
    for _ in range(3):
        noise, real = torch.randn(4, 2), torch.randn(4, 2)
        losses = (criticising(noise, real), deceiving(noise))
        expected = []
        for (step, optimizer), inputs in zip(steps, ((noise, real), (noise,)), strict=True):
            optimizer.zero_grad()
            expected.append(step(*inputs))
            expected[-1].backward()
            optimizer.step()
        torch.testing.assert_close(losses, tuple(loss.detach() for loss in expected))
    assert_same_weights(generator, plain_generator)
    assert_same_weights(critic, plain_critic)


# Resuming from a checkpoint


def test_training_resumes_from_a_checkpoint_as_if_it_had_never_stopped(tmp_path):
    def adam(model):
        return poptorch.optim.AdamW(
            model.parameters(), lr=0.01, weight_decay=0.1, bias_correction=True, loss_scaling=64.0
        )

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.layer, self.loss = nn.BatchNorm1d(4), nn.Linear(4, 3), nn.CrossEntropyLoss()

        def forward(self, x, labels):
            scores = self.layer(self.norm(x))
            return scores, self.loss(scores, labels)

    torch.manual_seed(0)
    model, batch = Model(), (torch.randn(8, 4), torch.randint(0, 3, (8,)))
    optimizer = adam(model)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    for _ in range(3):
        training(*batch)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint.pt")
    checkpoint = torch.load(tmp_path / "checkpoint.pt")
    again = Model()
    again.load_state_dict(checkpoint["model"])
    optimizer_again = adam(again)
    optimizer_again.load_state_dict(checkpoint["optimizer"])
    training_again = poptorch.trainingModel(again, optimizer=optimizer_again)
    for _ in range(2):
        torch.testing.assert_close(training_again(*batch), training(*batch), rtol=0, atol=0)
    assert_same_weights(again, model, tolerance=0)
