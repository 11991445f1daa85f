"""Small versions of public PopTorch programs, trained here and in eager PyTorch."""

from __future__ import annotations

import copy
import logging

import pytest
import torch

import poptorch


def micro_batches(batch, count):
    return list(zip(*(tensor.chunk(count) for tensor in batch), strict=True))


def train_eagerly(model, optimizer, batch, options):
    """Make the updates of one call, and return the loss of the last micro-batch."""
    iterations, accumulation = options.device_iterations, options.Training.gradient_accumulation
    pieces = micro_batches(batch, iterations * accumulation)
    for start in range(0, len(pieces), accumulation):
        optimizer.zero_grad()
        for piece in pieces[start : start + accumulation]:
            loss = model(*piece)[-1]
            (loss / accumulation).backward()
        optimizer.step()
    return loss.detach()


@pytest.fixture
def trains_like_eager(monkeypatch, caplog):
    """Trains a model by PopTorch and a copy of it eagerly, and compares losses, weights and buffers.

    The first call also has to pass the arrival check, which compares it with eager PyTorch under PopTorch's rules.
    """
    monkeypatch.setenv("PILOTAGE_CHECK", "first")
    caplog.set_level(logging.INFO, logger="pilotage")

    def train(model, batches, options, optimizers, *, tolerance, reference=None, as_reference=None):
        reference = copy.deepcopy(model) if reference is None else reference
        ours, theirs = optimizers(model), optimizers(reference, eagerly=True)
        training = poptorch.trainingModel(model, options.showCompilationProgressBar(False), ours)
        losses = []
        for number, batch in enumerate(batches):
            loss = training(*batch)[-1]
            eager = batch if as_reference is None else [as_reference(tensor) for tensor in batch]
            expected = train_eagerly(reference, theirs, eager, options)
            torch.testing.assert_close(loss.float(), expected.float(), rtol=tolerance, atol=tolerance)
            losses.append(expected.item())
            schedule(theirs, number)
            schedule(ours, number)
            training.setOptimizer(ours)
        state = model.state_dict()
        for name, value in reference.state_dict().items():
            if name.endswith("num_batches_tracked"):
                continue
            torch.testing.assert_close(state[name].to(value.dtype), value, rtol=tolerance, atol=tolerance, msg=name)
        said = [record.getMessage() for record in caplog.records]
        assert any(message.startswith("Agrees with eager PyTorch") for message in said), said
        return losses, training

    return train


def schedule(optimizer, number):
    """Halve the learning rate after the second call, as a schedule would."""
    if number == 1:
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] / 2
