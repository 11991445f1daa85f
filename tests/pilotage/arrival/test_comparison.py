import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.arrival import comparison
from pilotage.arrival.comparison import Quantity, distance, excess, tolerance


@given(st.floats(1e-6, 1e6), st.floats(-0.5, 0.5))
def test_the_distance_is_relative(size, error):
    expected = torch.linspace(-1, 1, 11, dtype=torch.float64) * size
    assert distance(expected * (1 + error), expected) == pytest.approx(abs(error), rel=1e-6, abs=1e-12)


def test_weights_are_measured_by_their_update():
    start = torch.ones(100)
    expected = start + 1e-3
    wrong = start + 1.1e-3
    assert distance(wrong, expected) < 2e-4
    assert distance(wrong, expected, start) == pytest.approx(0.1, rel=0.01)


def test_storing_a_weight_may_round_it():
    start = torch.full((100,), 1.0)
    expected = start + 1e-6
    neighbour = torch.nextafter(expected, torch.tensor(2.0))
    assert distance(neighbour, expected, start) == 0.0


def test_weights_that_do_not_move_have_to_stay():
    start = torch.ones(3)
    assert distance(start.clone(), start, start) == 0.0
    assert distance(start + 0.1, start, start) == math.inf


def test_values_that_are_not_finite_must_be_the_same():
    nan, inf = math.nan, math.inf
    expected = torch.tensor([1.0, nan, inf])
    assert distance(torch.tensor([1.0, nan, inf]), expected) == 0.0
    assert distance(torch.tensor([1.0, nan, -inf]), expected) == inf
    assert distance(torch.tensor([1.0, 2.0, inf]), expected) == inf
    assert distance(torch.tensor([nan, nan, inf]), expected) == inf
    assert distance(torch.tensor([1.1, nan, inf]), expected) == pytest.approx(0.1, rel=1e-3)


def test_whole_numbers_are_compared_one_by_one():
    assert distance(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 3, 5])) == 0.25
    assert distance(torch.tensor([True, False]), torch.tensor([True, False])) == 0.0


def test_another_shape_is_infinitely_far():
    assert distance(torch.ones(2), torch.ones(3)) == math.inf


def test_the_coarsest_type_decides():
    assert tolerance([torch.float32, torch.bfloat16]) == tolerance([torch.bfloat16])
    assert tolerance([torch.float64]) < tolerance([torch.float32]) < tolerance([torch.float16])
    assert tolerance([]) == tolerance([torch.float32])


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_complex_numbers_of_half_precision_are_compared():
    values = torch.tensor([1 + 2j, -3j], dtype=torch.complex32)
    assert distance(values, values.clone()) == 0.0
    assert distance(values, values.to(torch.complex64).add(1).to(torch.complex32)) > 0.1


@given(st.floats(1e-12, 1e3), st.floats(0.1, 20.0))
def test_squares_of_gradients_are_compared_like_gradients(gradient, ratio):
    gradients = torch.linspace(0, 1, 11, dtype=torch.float64) * gradient
    squares = Quantity(
        kind="optimizer",
        name="exp_avg_sq",
        of=lambda _: gradients**2,
        found=(ratio * gradients) ** 2,
        expected=gradients**2,
        has_squares=True,
    )
    assert squares.distance == pytest.approx(distance(ratio * gradients, gradients), rel=1e-6, abs=1e-9)
    assert squares.distance_of(None) == 0.0


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
def test_squares_that_cannot_be_squares_are_seen(wrong):
    found, expected = torch.tensor([wrong, 1.0]), torch.ones(2)
    state = Quantity(kind="optimizer", name="sum", of=lambda _: found, found=found, expected=expected, has_squares=True)
    assert state.distance > 1.0


def test_squares_of_complex_gradients_are_compared_as_they_are():
    expected = torch.complex(torch.ones(3), torch.full((3,), 4.0))
    found = expected * 1.01
    state = Quantity(
        kind="optimizer", name="exp_avg_sq", of=lambda _: found, found=found, expected=expected, has_squares=True
    )
    assert state.distance == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_the_excess_is_the_factor_by_which_a_result_is_larger(dtype):
    expected = torch.randn(500, dtype=dtype)
    assert excess(expected * 1.25, expected) == pytest.approx(0.25, abs=1e-3)
    assert excess(expected * 0.5, expected) == pytest.approx(-0.5, abs=1e-3)
    start = torch.ones(500, dtype=dtype)
    assert excess(start + 2 * (expected - start), expected, start) == pytest.approx(1.0, abs=2e-2)


def test_the_excess_of_a_large_result_is_computed_in_pieces(monkeypatch):
    found, expected, start = torch.randn(3, 50, 4).unbind()
    whole = excess(found.T, expected.T), excess(found, expected, start)
    monkeypatch.setattr(comparison, "_PIECE", 7)
    assert (excess(found.T, expected.T), excess(found, expected, start)) == pytest.approx(whole)


def test_what_cannot_be_larger_has_no_excess():
    ones = torch.ones(3)
    assert excess(ones, torch.zeros(3)) == 0.0
    assert excess(torch.ones(4), ones) == 0.0
    assert excess(torch.tensor([1.0, float("nan"), 1.0]), ones) == 0.0
    assert excess(torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64)) == 0.0
    assert excess(torch.ones(0), torch.ones(0)) == 0.0
