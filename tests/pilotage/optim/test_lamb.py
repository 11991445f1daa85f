from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.errors import OptionError
from pilotage.optim.lamb import Lamb

VALUES = frozenset({"lr", "beta1", "beta2", "eps", "weight_decay", "max_weight_norm"})

rates = st.lists(st.floats(1e-5, 0.1), min_size=20, max_size=20)
hyperparameters = st.fixed_dictionaries(
    {
        "betas": st.just((0.9, 0.999)) | st.tuples(st.floats(0.0, 0.99), st.floats(0.5, 0.9999)),
        "eps": st.floats(1e-8, 1e-3),
        "weight_decay": st.just(0.0) | st.floats(0.0, 0.1),
        "max_weight_norm": st.just(65500.0) | st.floats(0.1, 10.0),
        "bias_correction": st.booleans(),
        "maximize": st.booleans(),
    }
)


def scalar_lamb(weights, gradients, learning_rates, *, betas, eps, weight_decay, max_weight_norm, **flags):
    """LAMB by its definition, on lists of Python numbers."""
    first, second = [0.0] * len(weights), [0.0] * len(weights)
    for step, (gradient, learning_rate) in enumerate(zip(gradients, learning_rates, strict=True), start=1):
        for i, slope in enumerate(-g if flags["maximize"] else g for g in gradient):
            first[i] = betas[0] * first[i] + (1 - betas[0]) * slope
            second[i] = betas[1] * second[i] + (1 - betas[1]) * slope * slope
        divisors = [1 - beta**step if flags["bias_correction"] else 1.0 for beta in betas]
        update = [
            (m / divisors[0]) / (math.sqrt(v / divisors[1]) + eps) + weight_decay * w
            for m, v, w in zip(first, second, weights, strict=True)
        ]
        norms = math.hypot(*weights), math.hypot(*update)
        trust = min(norms[0], max_weight_norm) / norms[1] if all(norms) else 1.0
        weights = [w - learning_rate * trust * u for w, u in zip(weights, update, strict=True)]
    return weights


@given(hyperparameters=hyperparameters, learning_rates=rates, seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_updates_follow_the_definition(hyperparameters, learning_rates, seed):
    torch.manual_seed(seed)
    weights = torch.nn.Parameter(torch.randn(9, dtype=torch.float64))
    gradients = torch.randn(20, 9, dtype=torch.float64)
    expected = scalar_lamb(weights.tolist(), gradients.tolist(), learning_rates, **hyperparameters)
    optimizer = Lamb([weights], **hyperparameters)
    for learning_rate, gradient in zip(learning_rates, gradients, strict=True):
        optimizer.param_groups[0]["lr"] = learning_rate
        weights.grad = gradient
        optimizer.step()
    torch.testing.assert_close(weights.detach(), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@given(hyperparameters=hyperparameters, learning_rates=rates, variable=st.sampled_from([VALUES, {"lr"}]))
@settings(max_examples=10, deadline=None)
def test_its_captured_graph_equals_its_eager_step(race, hyperparameters, learning_rates, variable):
    run = race(lambda p: Lamb(p, **hyperparameters), variable=frozenset(variable), captured=True)
    run.run(learning_rates, 0)
    run.assert_close(2e-6)


@pytest.mark.parametrize(("weights", "gradient"), [([0.0, 0.0], [1.0, 2.0]), ([1.0, 2.0], [0.0, 0.0])])
def test_the_trust_ratio_is_one_if_a_norm_is_zero(weights, gradient):
    parameter = torch.nn.Parameter(torch.tensor(weights))
    optimizer = Lamb([parameter], lr=0.1, weight_decay=0.0)
    parameter.grad = torch.tensor(gradient)
    optimizer.step()
    moved = torch.tensor([0.1, 0.1]) * torch.tensor(gradient).sign()
    torch.testing.assert_close(parameter.detach(), torch.tensor(weights) - moved)


def test_half_precision_weights_of_a_large_norm_do_not_overflow():
    parameter = torch.nn.Parameter(torch.full((1000,), 1000.0, dtype=torch.float16))
    optimizer = Lamb([parameter], lr=0.1, eps=1e-3, weight_decay=0.0)
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    torch.testing.assert_close(parameter.detach().float(), torch.full((1000,), 900.0), rtol=1e-2, atol=0)


def test_parameters_without_gradient_stay_and_a_closure_is_called():
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = Lamb([used, unused])

    def closure():
        optimizer.zero_grad()
        loss = (used**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    assert torch.equal(unused.detach(), torch.ones(2))
    assert not torch.equal(used.detach(), torch.ones(2))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_continues_where_the_original_stopped(copied):
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = Lamb([parameter], bias_correction=False, max_weight_norm=1.5)
    parameter.grad = torch.ones(3)
    optimizer.step()
    twin = copied(optimizer)
    (other,) = twin.param_groups[0]["params"]
    other.grad = torch.ones(3)
    twin.step()
    optimizer.step()
    assert torch.equal(other, parameter)
    assert twin.bias_correction is False


def test_a_learning_rate_schedule_is_followed():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = Lamb([parameter], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    parameter.grad = torch.ones(3)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    "wrong", [{"lr": -1.0}, {"eps": -1.0}, {"weight_decay": -0.1}, {"max_weight_norm": -1.0}, {"betas": (0.9, 1.0)}]
)
def test_values_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Lamb([torch.nn.Parameter(torch.ones(1))], **wrong)
