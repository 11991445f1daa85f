"""Which loss a wrapped model is trained on, and how its gradients are pooled."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = pytest.mark.slow

CLASSES = torch.tensor([0, 2, 1, 0])
TARGETS = torch.tensor([[0.2, 0.5, 0.9], [0.1, 0.4, 0.3], [0.7, 0.6, 0.2], [0.5, 0.5, 0.5]])
SIGNS = torch.tensor([1.0, -1.0, 1.0, -1.0])
BATCH = torch.linspace(-1, 1, 20).reshape(4, 5)
Layer = runpy.run_path(str(Path(__file__).with_name("layers.py")))["Layer"]


def trained(finish):
    """The module after one call of its training wrapper, and what the call returned."""
    module = Layer(finish)
    model = poptorch.trainingModel(module, optimizer=poptorch.optim.SGD(module.parameters(), lr=0.1))
    return module, model(BATCH)


def eagerly(loss_of):
    module = Layer(loss_of)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(BATCH).sum().backward()
    optimizer.step()
    return module


def assert_trained_alike(module, other):
    for one, another in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, another, rtol=0, atol=1e-7)


LOSSES = {
    nn.L1Loss: lambda loss, x: loss(x, TARGETS),
    nn.MSELoss: lambda loss, x: loss(x, TARGETS),
    nn.SmoothL1Loss: lambda loss, x: loss(x, TARGETS),
    nn.HuberLoss: lambda loss, x: loss(x, TARGETS),
    nn.NLLLoss: lambda loss, x: loss(x.log_softmax(1), CLASSES),
    nn.CrossEntropyLoss: lambda loss, x: loss(x, CLASSES),
    nn.BCELoss: lambda loss, x: loss(x.sigmoid(), TARGETS),
    nn.BCEWithLogitsLoss: lambda loss, x: loss(x, TARGETS),
    nn.KLDivLoss: lambda loss, x: loss(x.log_softmax(1), TARGETS),
    nn.PoissonNLLLoss: lambda loss, x: loss(x, TARGETS),
    nn.HingeEmbeddingLoss: lambda loss, x: loss(x[:, 0], SIGNS),
    nn.CosineEmbeddingLoss: lambda loss, x: loss(x, TARGETS, SIGNS),
    nn.MarginRankingLoss: lambda loss, x: loss(x[:, 0], x[:, 1], SIGNS),
    nn.SoftMarginLoss: lambda loss, x: loss(x[:, 0], SIGNS),
    nn.MultiLabelSoftMarginLoss: lambda loss, x: loss(x, TARGETS.round()),
    nn.TripletMarginLoss: lambda loss, x: loss(x, TARGETS, TARGETS + 1),
    nn.CTCLoss: lambda loss, x: loss(
        x.log_softmax(1)[:, None], torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])
    ),
}


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
def test_a_loss_of_torch_is_the_root_of_training(kind):
    def finish(x):
        # The mean of torch's divergence is not the mathematical one, and torch warns about it.
        return LOSSES[kind](kind(reduction="batchmean") if kind is nn.KLDivLoss else kind(), x)

    assert_trained_alike(trained(finish)[0], eagerly(finish))


@pytest.mark.parametrize("dimensions", [1, 2])
def test_losses_of_sequences_and_pictures_are_found(dimensions):
    shape = (2, 3, *[2] * dimensions)

    def finish(x):
        scores = torch.cat([x.flatten(), x.flatten()])[: 2 * 3 * 2**dimensions].reshape(shape)
        return functional.nll_loss(scores.log_softmax(1), torch.ones(2, *shape[2:], dtype=torch.long))

    assert_trained_alike(trained(finish)[0], eagerly(finish))


@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_a_custom_loss_can_be_marked(reduction):
    def own(x):
        return poptorch.identity_loss((x - TARGETS).abs() ** 3, reduction)

    module, result = trained(own)
    assert_trained_alike(module, eagerly(own))
    assert result.shape == ((4, 3) if reduction == "none" else ())


def test_an_unknown_reduction_is_refused():
    with pytest.raises(AssertionError, match="Unsupported reduction type!"):
        trained(lambda x: poptorch.identity_loss(x, "median"))


def test_a_model_without_a_loss_is_refused():
    with pytest.raises(poptorch.Error, match="Couldn't find a loss in graph"):
        trained(lambda x: (x - TARGETS).abs().mean())


def test_two_losses_of_equal_rank_are_refused():
    words = (
        "Multiple independent losses found in graph. Graph must have one final loss. "
        "Wrap final graph loss in poptorch.identity_loss."
    )
    with pytest.raises(poptorch.Error, match=words):
        trained(lambda x: (functional.mse_loss(x, TARGETS), functional.l1_loss(x, TARGETS)))
    with pytest.raises(poptorch.Error, match=words):
        trained(lambda x: functional.mse_loss(x, TARGETS) + functional.l1_loss(x, TARGETS))


def test_a_failed_compilation_leaves_the_model_ready_for_another_try():
    module = Layer(lambda x: x.sum())
    model = poptorch.trainingModel(module)
    with pytest.raises(poptorch.Error, match="Couldn't find a loss"):
        model(torch.ones(4, 5))
    assert not model.isCompiled()
    model.engine.module.finish = lambda x: functional.mse_loss(x, TARGETS)
    model(torch.ones(4, 5))
    assert model.isCompiled()


def test_losses_that_feed_the_last_one_are_allowed():
    def feeding(x):
        total = functional.mse_loss(x, TARGETS) + 2 * functional.l1_loss(x, TARGETS)
        return poptorch.identity_loss(total, "none")

    assert_trained_alike(trained(feeding)[0], eagerly(feeding))

    def chained(x):
        return functional.l1_loss(functional.mse_loss(x, TARGETS), torch.zeros(()))

    assert_trained_alike(trained(chained)[0], eagerly(chained))


def scaled(x):
    return functional.mse_loss(x, TARGETS) * 5


def scaled_in_place(x):
    loss = functional.mse_loss(x, TARGETS)
    loss *= 5
    return loss


def summed_up(x):
    loss = functional.mse_loss(x, TARGETS)
    loss += (x**2).sum()
    return loss


@pytest.mark.parametrize("finish", [scaled, scaled_in_place, summed_up], ids=lambda function: function.__name__)
def test_operations_after_a_loss_do_not_affect_the_gradients(finish):
    module, result = trained(finish)
    assert_trained_alike(module, eagerly(lambda x: functional.mse_loss(x, TARGETS)))
    torch.testing.assert_close(result, Layer(finish)(BATCH).detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("finish", [scaled, scaled_in_place, summed_up], ids=lambda function: function.__name__)
def test_operations_after_a_loss_affect_the_gradients_if_marked(finish):
    def marked(x):
        return poptorch.identity_loss(finish(x), "none")

    assert_trained_alike(trained(marked)[0], eagerly(finish))


def test_the_loss_need_not_be_returned():
    def finish(x):
        functional.mse_loss(x, TARGETS)
        return x.detach().argmax(dim=1)

    module, result = trained(finish)
    assert result.dtype == torch.int32
    assert_trained_alike(module, eagerly(lambda x: functional.mse_loss(x, TARGETS)))


def test_the_seed_of_the_gradients_is_ones_over_the_whole_loss():
    module, result = trained(lambda x: functional.mse_loss(x, TARGETS, reduction="none"))
    assert result.shape == (4, 3)
    assert_trained_alike(module, eagerly(lambda x: functional.mse_loss(x, TARGETS, reduction="none")))


def test_inference_needs_no_loss():
    module = Layer(lambda x: (functional.mse_loss(x, TARGETS), functional.l1_loss(x, TARGETS)))
    assert len(poptorch.inferenceModel(module)(torch.ones(4, 5))) == 2


# Reduction of gradients


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 1)

    def forward(self, x, y):
        return functional.mse_loss(self.layer(x), y)


def pooled_eagerly(module, x, y, iterations, pooled, divides):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for whole in zip(x.chunk(iterations), y.chunk(iterations), strict=True):
        optimizer.zero_grad()
        for part in zip(*(each.chunk(pooled) for each in whole), strict=True):
            loss = module(*part)
            (loss / pooled if divides else loss).backward()
        optimizer.step()


@pytest.mark.parametrize("reduction", [poptorch.ReductionType.Mean, poptorch.ReductionType.Sum])
@pytest.mark.parametrize(("iterations", "accumulation", "replicas"), [(1, 4, 1), (1, 1, 4), (2, 3, 2), (3, 1, 1)])
def test_gradients_are_pooled_over_accumulation_and_replicas(reduction, iterations, accumulation, replicas):
    options = poptorch.Options().deviceIterations(iterations).replicationFactor(replicas)
    options.Training.gradientAccumulation(accumulation)
    options.Training.accumulationAndReplicationReductionType(reduction)
    module = Regression()
    twin = copy.deepcopy(module)
    model = poptorch.trainingModel(module, options, optimizer=poptorch.optim.SGD(module.parameters(), lr=0.1))
    pooled = accumulation * replicas
    x, y = torch.randn(iterations * pooled * 2, 3), torch.randn(iterations * pooled * 2, 1)
    model(x, y)
    pooled_eagerly(twin, x, y, iterations, pooled, divides=reduction is poptorch.ReductionType.Mean)
    for one, another in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, another, rtol=0, atol=1e-6)


def test_gradients_are_averaged_by_default():
    options = poptorch.Options()
    assert options.Training.accumulation_and_replication_reduction_type is poptorch.ReductionType.Mean


def test_a_call_leaves_no_gradients_and_needs_no_step():
    module = Regression()
    before = module.layer.weight.detach().clone()
    poptorch.trainingModel(module)(torch.ones(2, 3), torch.ones(2, 1))
    assert all(parameter.grad is None for parameter in module.parameters())
    assert not torch.equal(module.layer.weight, before)


@pytest.mark.parametrize("replicas", [1, 2])
def test_batch_norm_uses_only_the_micro_batch(replicas):
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            return self.norm(x), poptorch.identity_loss(self.norm.weight, "sum")

    options = poptorch.Options().deviceIterations(2).replicationFactor(replicas).broadcastBuffers(False)
    options.outputMode(poptorch.OutputMode.All)
    module = Normed()
    model = poptorch.trainingModel(module, options, optimizer=poptorch.optim.SGD(module.parameters(), lr=0.0))
    x = torch.randn(2 * replicas * 4, 2)
    expected = torch.cat([nn.BatchNorm1d(2)(part) for part in x.chunk(2 * replicas)])
    torch.testing.assert_close(model(x)[0], expected.detach(), rtol=0, atol=1e-6)
