from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.optim.families import Refinements

VALUES = frozenset({"lr", "alpha", "eps", "weight_decay", "momentum"})

rates = st.lists(st.floats(1e-6, 0.1), min_size=20, max_size=20)
hyperparameters = st.fixed_dictionaries(
    {
        "alpha": st.floats(0.5, 0.999),
        "eps": st.floats(1e-9, 1e-3),
        "weight_decay": st.just(0.0) | st.floats(0.0, 0.1),
        "momentum": st.just(0.0) | st.floats(0.01, 0.99),
        "centered": st.booleans(),
        "maximize": st.booleans(),
    }
)


def variables(hyperparameters, all_of_them):
    """The variables; without momentum torch uses another formula, so zero has to be a constant."""
    return (VALUES if all_of_them else frozenset({"lr"})) - (
        {"momentum"} if hyperparameters["momentum"] == 0 else set()
    )


@pytest.mark.slow
@given(hyperparameters=hyperparameters, learning_rates=rates, all_vary=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_updates_are_bitwise_identical_to_torch(race, hyperparameters, learning_rates, all_vary, seed):
    variable = variables(hyperparameters, all_vary)
    run = race(lambda p: torch.optim.RMSprop(p, **hyperparameters), variable=variable, captured=False)
    run.run(learning_rates, seed)
    run.assert_equal()


@pytest.mark.slow
@given(hyperparameters=hyperparameters, learning_rates=rates, all_vary=st.booleans())
@settings(max_examples=10, deadline=None)
def test_the_captured_update_is_bitwise_identical_to_torch(race, hyperparameters, learning_rates, all_vary):
    variable = variables(hyperparameters, all_vary)
    run = race(lambda p: torch.optim.RMSprop(p, **hyperparameters), variable=variable, captured=True)
    run.run(learning_rates, 0)
    run.assert_equal()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_compiled_in_learning_rate_equals_torch_too(race, momentum):
    run = race(lambda p: torch.optim.RMSprop(p, lr=0.03, momentum=momentum), variable=frozenset(), captured=True)
    run.run([0.03] * 20, 0)
    run.assert_equal()


def test_a_momentum_that_varies_and_is_zero_stays_within_rounding_of_torch(race):
    run = race(lambda p: torch.optim.RMSprop(p), variable=VALUES, captured=True)
    run.run([0.01] * 20, 0)
    run.assert_close(1e-6)


@given(
    hyperparameters=hyperparameters,
    learning_rates=st.lists(st.floats(1e-6, 0.01), min_size=20, max_size=20),
    all_vary=st.booleans(),
    captured=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_the_tensorflow_variant_follows_tensorflows_formula(race, hyperparameters, learning_rates, all_vary, captured):
    variable = variables(hyperparameters, all_vary)
    refinements = Refinements(constants=VALUES - variable, tensorflow=True)
    run = race(
        lambda p: torch.optim.RMSprop(p, **hyperparameters),
        variable=variable,
        captured=captured,
        refinements=refinements,
    )
    expected = tensorflow_rmsprop(run, learning_rates, **hyperparameters)
    run.run(learning_rates, 0)
    torch.testing.assert_close(run.parameters[0].double(), expected, rtol=1e-4, atol=1e-4)


def tensorflow_rmsprop(run, learning_rates, *, alpha, eps, weight_decay, momentum, centered, maximize):
    weights = run.parameters[0].double()
    squares, mean, velocity = torch.ones_like(weights), torch.zeros_like(weights), torch.zeros_like(weights)
    generator = torch.Generator().manual_seed(0)
    for learning_rate in learning_rates:
        gradient, *_ = (torch.randn(p.shape, generator=generator).double() for p in run.parameters)
        gradient = (-gradient if maximize else gradient) + weight_decay * weights
        squares = squares + (1 - alpha) * (gradient**2 - squares)
        mean = mean + (1 - alpha) * (gradient - mean)
        variance = squares - mean**2 if centered else squares
        velocity = momentum * velocity + learning_rate * gradient / torch.sqrt(variance + eps)
        weights = weights - velocity
    return weights


def test_averages_are_stored_in_the_requested_types(race):
    refinements = Refinements(
        constants=frozenset(), first_moment_dtype=torch.float16, second_moment_dtype=torch.float32
    )
    run = race(
        lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True, eps=1e-2),
        variable=VALUES,
        captured=True,
        refinements=refinements,
    )
    run.run([0.001] * 5, 0)
    types = {slot: {tensor.dtype for tensor in tensors} for slot, tensors in run.slots.items()}
    assert types == {"square_avg": {torch.float32}, "grad_avg": {torch.float16}, "momentum_buffer": {torch.float16}}
    run.assert_close(1e-2)
