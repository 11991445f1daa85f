from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.optim.adam import AdamRule
from pilotage.optim.families import Refinements
from pilotage.optim.workspace import open_workspace

VALUES = frozenset({"lr", "beta1", "beta2", "eps", "weight_decay"})

kinds = st.sampled_from([torch.optim.Adam, torch.optim.AdamW])
rates = st.lists(st.floats(1e-6, 0.1), min_size=20, max_size=20)
hyperparameters = st.fixed_dictionaries(
    {
        "betas": st.just((0.9, 0.999)) | st.tuples(st.floats(0.0, 0.99), st.floats(0.01, 0.9999)),
        "eps": st.floats(1e-10, 1e-3),
        "weight_decay": st.just(0.0) | st.floats(0.0, 0.1),
        "amsgrad": st.booleans(),
        "maximize": st.booleans(),
    }
)


@pytest.mark.slow
@given(
    kind=kinds,
    hyperparameters=hyperparameters,
    learning_rates=rates,
    variable=st.sampled_from([VALUES, {"lr"}]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_updates_are_bitwise_identical_to_torch(race, kind, hyperparameters, learning_rates, variable, seed):
    run = race(lambda p: kind(p, **hyperparameters), variable=frozenset(variable), captured=False)
    run.run(learning_rates, seed)
    run.assert_equal()


@pytest.mark.slow
@given(kind=kinds, hyperparameters=hyperparameters, learning_rates=rates, variable=st.sampled_from([VALUES, {"lr"}]))
@settings(max_examples=10, deadline=None)
def test_the_captured_update_is_bitwise_identical_to_torch(race, kind, hyperparameters, learning_rates, variable):
    run = race(lambda p: kind(p, **hyperparameters), variable=frozenset(variable), captured=True)
    run.run(learning_rates, 0)
    run.assert_equal()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_a_compiled_in_learning_rate_equals_torch_too(race, kind):
    run = race(lambda p: kind(p, lr=0.03, weight_decay=0.01), variable=frozenset(), captured=True)
    run.run([0.03] * 20, 0)
    run.assert_equal()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 0.0), (torch.complex64, 1e-6)])
def test_other_types_of_parameter_equal_torch(race, dtype, tolerance):
    run = race(lambda p: torch.optim.Adam(p, weight_decay=0.1), variable=VALUES, captured=False, dtype=dtype)
    run.run([0.01] * 20, 0)
    run.assert_close(tolerance)


@pytest.mark.parametrize("variable", [VALUES, {"lr"}])
def test_half_precision_stays_within_its_rounding_of_torch(race, variable):
    run = race(
        lambda p: torch.optim.Adam(p, eps=1e-3),
        variable=frozenset(variable),
        captured=True,
        dtype=torch.float16,
    )
    run.run([1e-2] * 5, 0)
    run.assert_close(2e-2)


def test_without_bias_correction_the_moments_are_used_unchanged(race):
    refinements = Refinements(constants=frozenset(), bias_correction=False)
    run = race(lambda p: torch.optim.AdamW(p), variable=VALUES, captured=True, refinements=refinements)
    weights = run.parameters[0].double()
    first, second = torch.zeros(3, 5).double(), torch.zeros(3, 5).double()
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        gradient, *_ = (torch.randn(p.shape, generator=generator).double() for p in run.parameters)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights = weights * (1 - 0.01 * 0.01) - 0.01 * first / (second.sqrt() + 1e-8)
    run.run([0.01] * 4, 0)
    torch.testing.assert_close(run.parameters[0].double(), weights, rtol=1e-5, atol=1e-6)


def test_each_moment_is_stored_in_its_own_type(race):
    refinements = Refinements(
        constants=frozenset(), first_moment_dtype=torch.float16, second_moment_dtype=torch.float32
    )
    run = race(lambda p: torch.optim.Adam(p), variable=VALUES, captured=True, refinements=refinements)
    run.run([0.01] * 5, 0)
    assert {moment.dtype for moment in run.slots["exp_avg"]} == {torch.float16}
    assert {moment.dtype for moment in run.slots["exp_avg_sq"]} == {torch.float32}
    run.assert_close(5e-4)
    assert not torch.equal(run.parameters[0], run.theirs[0])


def test_float32_moments_train_half_precision_weights_that_float16_moments_would_not():
    weights, gradients = torch.ones(4, dtype=torch.float16), torch.full((4,), 1e-5, dtype=torch.float16)
    values = {"lr": 0.5, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
    rule = AdamRule(first_moment_dtype=torch.float32, second_moment_dtype=torch.float32)
    slots = {slot: [rule.initial(slot, weights)] for slot in rule.slots}
    work = open_workspace([weights], [gradients], slots, maximize=False)
    rule.apply(work, torch.zeros((), dtype=torch.float64), values)
    torch.testing.assert_close(weights.float(), torch.full((4,), 0.5), rtol=1e-2, atol=0)
