"""The same arithmetic as torch's."""

from __future__ import annotations

import math

import pytest
import torch

import poptorch
from poptorch import optim

pytestmark = pytest.mark.slow

SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1, "eps": 1e-5}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "alpha": 0.9, "weight_decay": 0.1}),
]


@pytest.mark.parametrize("package", [torch.optim, optim], ids=["torch", "poptorch"])
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_training_equals_torchs_own_loop(package, kind, settings, network, batch, training, step_eagerly, assert_same):
    module, twin = network(), network()
    model = training(module, getattr(package, kind)(module.parameters(), **settings))
    reference = getattr(torch.optim, kind)(twin.parameters(), **settings)
    for _ in range(4):
        model(*batch)
        step_eagerly(twin, reference)
    assert_same(module, twin)


@pytest.mark.parametrize("loss_scaling", [1.0, 128.0])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"])
def test_loss_scaling_is_undone_before_the_update(kind, loss_scaling, network, batch, training, assert_same):
    module, twin = network(), network()
    model = training(module, getattr(optim, kind)(module.parameters(), lr=0.01, loss_scaling=loss_scaling))
    plain = training(twin, getattr(optim, kind)(twin.parameters(), lr=0.01))
    for _ in range(3):
        assert math.isclose(model(*batch).item(), plain(*batch).item(), abs_tol=1e-6)
    assert_same(module, twin)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("norm", [0.01, 0.3, math.inf])
def test_gradients_are_clipped_by_their_common_norm(kind, norm, network, batch, training, step_eagerly, assert_same):
    module, twin = network(), network()
    model = training(module, getattr(optim, kind)(module.parameters(), lr=0.1, max_grad_norm=norm))
    reference = getattr(torch.optim, kind)(twin.parameters(), lr=0.1)
    for _ in range(3):
        model(*batch)
        step_eagerly(twin, reference, clip=norm)
    assert_same(module, twin)


@pytest.mark.parametrize("accumulation", [1, 4])
def test_clipping_looks_at_the_pooled_gradients(accumulation, network, batch, training, step_eagerly, assert_same):
    options = poptorch.Options()
    options.Training.gradientAccumulation(accumulation)
    module, twin = network(), network()
    model = training(module, optim.SGD(module.parameters(), lr=0.5, max_grad_norm=0.1), options)
    model(*batch)
    # The loss is a mean over equal parts, so that the pooled gradient is that of the whole batch.
    step_eagerly(twin, torch.optim.SGD(twin.parameters(), lr=0.5), clip=0.1)
    assert_same(module, twin)


@pytest.mark.parametrize("strategy", poptorch.MeanReductionStrategy)
def test_gradients_that_are_summed_are_never_averaged(strategy, network, batch, training, step_eagerly, assert_same):
    options = poptorch.Options()
    options.Training.gradientAccumulation(4)
    options.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)
    options.Training.setMeanAccumulationAndReplicationReductionStrategy(strategy)
    module, twin = network(), network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1), options)
    reference = torch.optim.SGD(twin.parameters(), lr=0.4)
    for _ in range(2):
        model(*batch)
        step_eagerly(twin, reference)
    assert_same(module, twin)


def test_gradients_pooled_in_float16_are_summed_if_a_sum_is_requested(
    network, batch, training, step_eagerly, assert_same
):
    options = poptorch.Options()
    options.Training.gradientAccumulation(4)
    options.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)
    module, twin = network(), network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1, accum_type=torch.float16), options)
    model(*batch)
    step_eagerly(twin, torch.optim.SGD(twin.parameters(), lr=0.4))
    assert_same(module, twin, 1e-3)


@pytest.mark.parametrize("bias_correction", [True, False])
def test_lamb_scales_its_steps_by_the_trust_ratio(bias_correction, network, batch, training, assert_same):
    module, twin = network(), network()
    settings = {"lr": 0.1, "weight_decay": 0.1, "bias_correction": bias_correction, "max_weight_norm": 1.5}
    model = training(module, optim.LAMB(module.parameters(), **settings))
    moments = {name: [torch.zeros_like(p), torch.zeros_like(p)] for name, p in twin.named_parameters()}
    for step in range(1, 4):
        model(*batch)
        twin.zero_grad()
        twin(*batch).backward()
        with torch.no_grad():
            for name, parameter in twin.named_parameters():
                first, second = moments[name]
                first.mul_(0.9).add_(parameter.grad, alpha=0.1)
                second.mul_(0.999).addcmul_(parameter.grad, parameter.grad, value=0.001)
                corrections = (1 - 0.9**step, 1 - 0.999**step) if bias_correction else (1, 1)
                update = (first / corrections[0]) / ((second / corrections[1]).sqrt() + 1e-8) + 0.1 * parameter
                weight_norm, update_norm = parameter.norm().clamp(max=1.5), update.norm()
                ratio = weight_norm / update_norm if weight_norm > 0 and update_norm > 0 else 1.0
                parameter -= 0.1 * ratio * update
    assert_same(module, twin, 1e-5)


def test_rmsprop_after_tensorflow_starts_from_one_and_puts_epsilon_under_the_root(
    network, batch, training, assert_same
):
    module, twin = network(), network()
    settings = {"lr": 0.05, "alpha": 0.9, "momentum": 0.8, "eps": 1e-3}
    model = training(module, optim.RMSprop(module.parameters(), **settings, use_tf_variant=True))
    state = {name: [torch.ones_like(p), torch.zeros_like(p)] for name, p in twin.named_parameters()}
    for _ in range(3):
        model(*batch)
        twin.zero_grad()
        twin(*batch).backward()
        with torch.no_grad():
            for name, parameter in twin.named_parameters():
                square, buffer = state[name]
                square.mul_(0.9).addcmul_(parameter.grad, parameter.grad, value=0.1)
                buffer.mul_(0.8).add_(0.05 * parameter.grad / (square + 1e-3).sqrt())
                parameter -= buffer
    assert_same(module, twin, 1e-5)
