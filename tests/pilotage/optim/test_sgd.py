from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.optim.families import Refinements
from pilotage.optim.sgd import SgdRule
from pilotage.optim.workspace import open_workspace

VALUES = frozenset({"lr", "momentum", "dampening", "weight_decay"})

rates = st.lists(st.floats(1e-6, 0.5), min_size=20, max_size=20)
hyperparameters = st.fixed_dictionaries(
    {
        "momentum": st.sampled_from([0.0, 0.5, 0.9]) | st.floats(0.01, 0.99),
        "dampening": st.just(0.0) | st.floats(0.0, 1.0),
        "weight_decay": st.just(0.0) | st.floats(0.0, 0.1),
        "nesterov": st.booleans(),
        "maximize": st.booleans(),
    }
).map(lambda given: given | ({} if given["momentum"] > 0 and given["dampening"] == 0 else {"nesterov": False}))


@given(
    hyperparameters=hyperparameters,
    learning_rates=rates,
    variable=st.sampled_from([VALUES, {"lr"}]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_updates_are_bitwise_identical_to_torch(race, hyperparameters, learning_rates, variable, seed):
    run = race(lambda p: torch.optim.SGD(p, lr=1.0, **hyperparameters), variable=frozenset(variable), captured=False)
    run.run(learning_rates, seed)
    run.assert_equal()


@given(hyperparameters=hyperparameters, learning_rates=rates, variable=st.sampled_from([VALUES, {"lr"}]))
@settings(max_examples=10, deadline=None)
def test_the_captured_update_is_bitwise_identical_to_torch(race, hyperparameters, learning_rates, variable):
    run = race(lambda p: torch.optim.SGD(p, lr=1.0, **hyperparameters), variable=frozenset(variable), captured=True)
    run.run(learning_rates, 0)
    run.assert_equal()


@pytest.mark.parametrize("captured", [False, True])
def test_a_compiled_in_learning_rate_equals_torch_too(race, captured):
    run = race(
        lambda p: torch.optim.SGD(p, lr=0.03, momentum=0.9, dampening=0.2, weight_decay=0.01),
        variable=frozenset(),
        captured=captured,
    )
    run.run([0.03] * 20, 0)
    run.assert_equal()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 0.0), (torch.complex64, 1e-6)])
def test_other_types_of_parameter_equal_torch(race, dtype, tolerance):
    run = race(
        lambda p: torch.optim.SGD(p, lr=0.03, momentum=0.9, weight_decay=0.01),
        variable=VALUES,
        captured=False,
        dtype=dtype,
    )
    run.run([0.01, 0.02, 0.03], 0)
    run.assert_close(tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_within_its_rounding_of_torch(race, dtype):
    run = race(lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9), variable=VALUES, captured=True, dtype=dtype)
    run.run([1e-2] * 5, 0)
    run.assert_close(2e-2)


def test_a_learning_rate_too_small_for_half_precision_has_an_effect():
    weights, gradients = torch.zeros(4, dtype=torch.float16), torch.full((4,), 1e4, dtype=torch.float16)
    values = {"lr": torch.tensor(1e-8, dtype=torch.float64), "weight_decay": 0.0}
    work = open_workspace([weights], [gradients], {}, maximize=False)
    SgdRule().apply(work, torch.zeros((), dtype=torch.float64), values)
    torch.testing.assert_close(weights.float(), torch.full((4,), -1e-4), rtol=1e-2, atol=0)


def test_a_variable_momentum_of_zero_has_no_effect(race):
    run = race(lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.0, dampening=0.5), variable=VALUES, captured=True)
    assert run.group.rule.momentum
    run.run([0.1, 0.2, 0.3], 0)
    run.assert_equal()


def test_a_constant_zero_momentum_adds_no_operations(race, captured_graph):
    weights, gradients = torch.zeros(3), torch.zeros(3)
    values = {"lr": 0.1, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0}
    step = torch.zeros((), dtype=torch.float64)

    def update(weight, gradient):
        SgdRule().apply(open_workspace([weight], [gradient], {}, maximize=False), step, values)

    graph = captured_graph(update, [weights, gradients]).graph
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == ["aten._foreach_add_.List"]


def test_a_float16_momentum_buffer_is_rounded_after_each_update(race):
    refinements = Refinements(constants=frozenset(), first_moment_dtype=torch.float16)
    run = race(
        lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9), variable=VALUES, captured=True, refinements=refinements
    )
    assert {buffer.dtype for buffer in run.slots["momentum_buffer"]} == {torch.float16}
    weights, buffer = run.parameters[0].clone(), torch.zeros(3, 5, dtype=torch.float16)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        gradients = [torch.randn(p.shape, generator=generator) for p in run.parameters]
        buffer = (buffer.float() * 0.9 + gradients[0]).half()
        weights -= 0.01 * buffer.float()
    run.run([0.01] * 3, 0)
    assert torch.equal(run.slots["momentum_buffer"][0], buffer)
    torch.testing.assert_close(run.parameters[0], weights)


def test_a_float32_momentum_buffer_works_with_half_precision_weights(race):
    refinements = Refinements(constants=frozenset(), first_moment_dtype=torch.float32)
    run = race(
        lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9),
        variable=VALUES,
        captured=True,
        refinements=refinements,
        dtype=torch.float16,
    )
    run.run([0.01] * 3, 0)
    assert {buffer.dtype for buffer in run.slots["momentum_buffer"]} == {torch.float32}
    assert {parameter.dtype for parameter in run.parameters} == {torch.float16}
    run.assert_close(2e-2)
