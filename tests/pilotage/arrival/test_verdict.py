from dataclasses import replace

import pytest
import torch

from pilotage.arrival.comparison import Quantity
from pilotage.arrival.reference import Outcome
from pilotage.arrival.verdict import judge


def quantity(found, expected):
    return Quantity(
        kind="output",
        name="output",
        of=lambda outcome: outcome.outputs[0],
        found=torch.tensor([found]),
        expected=torch.tensor([expected]),
    )


def outcome(value):
    return lambda: Outcome(outputs=[torch.tensor([value])])


def never():
    raise AssertionError("nothing has to be repeated")


def test_small_distances_need_no_explanation():
    verdict = judge([quantity(1.0, 1.00001)], 1e-4, [never], bool)
    assert verdict.agrees
    assert not verdict.was_repeated


def test_other_rounding_explains_a_difference_as_large():
    verdict = judge([quantity(1.0, 1.01)], 1e-4, [outcome(1.01), outcome(1.02), never], bool)
    assert verdict.agrees
    assert verdict.was_repeated


def test_only_what_is_computed_from_pooled_gradients_may_have_the_rounding_of_their_type():
    def agrees(kind, pools):
        found = replace(quantity(1.0, 1.001), kind=kind)
        return judge([found], 1e-4, [], bool, pools=pools).agrees

    assert agrees("optimizer", 5e-3)
    assert agrees("weight", 5e-3)
    assert not agrees("output", 5e-3)
    assert not agrees("weight", 0.0)


def noisy(seed, size=0.1):
    """A thousand numbers with independent errors."""
    torch.manual_seed(seed)
    return torch.ones(1000) * (1 + size * torch.randn(1000))


def thousand(found):
    return replace(quantity(0.0, 0.0), found=found, expected=torch.ones(1000))


def repeated(seed):
    return lambda: Outcome(outputs=[noisy(seed)])


def test_independent_errors_do_not_explain_a_wrong_factor():
    repetitions = [repeated(seed) for seed in range(4)]
    assert judge([thousand(noisy(9))], 1e-4, repetitions, bool).agrees
    verdict = judge([thousand(1.5 * noisy(9))], 1e-4, repetitions, bool)
    assert not verdict.agrees
    assert "on the whole it is 1.5 times as large" in str(verdict.mismatches[0])


def test_a_factor_by_which_other_rounding_changes_all_numbers_is_explained():
    scaled = [lambda factor=factor: Outcome(outputs=[torch.full((1000,), factor)]) for factor in (1.04, 0.97)]
    assert judge([thousand(torch.full((1000,), 1.2))], 1e-4, scaled, bool).agrees


def test_updates_that_are_lost_when_weights_are_stored_need_no_explanation():
    start = torch.rand(4000, dtype=torch.float64).bfloat16() + 1
    update = 5e-2 * torch.rand(4000)
    weight = replace(
        quantity(0.0, 0.0),
        kind="weight",
        start=start,
        expected=(start.float() - update).bfloat16(),
        found=(start.float() - update * (1 + 0.02 * torch.randn(4000))).bfloat16(),
    )
    assert judge([weight], 3e-2, [never], bool).agrees
    doubled = replace(weight, found=(start.float() - 2 * update).bfloat16())
    assert not judge([doubled], 3e-2, [], bool).agrees


def test_what_rounding_does_not_explain_is_a_mismatch():
    verdict = judge([quantity(1.0, 1.5), quantity(2.0, 2.0)], 1e-4, [outcome(1.501), lambda: None], bool)
    assert not verdict.agrees
    (mismatch,) = verdict.mismatches
    assert "output is 1 in the program and 1.5 in eager PyTorch" in str(mismatch)


def test_a_result_that_is_not_a_number_is_a_mismatch():
    assert not judge([quantity(float("nan"), 1.0)], 1e-4, [outcome(1.0)], bool).agrees


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_updated_weight_that_is_not_a_number_in_both_agrees(dtype):
    start, broken = torch.ones(3, dtype=dtype), torch.full((3,), torch.nan, dtype=dtype)
    weight = replace(quantity(0.0, 0.0), kind="weight", start=start, found=broken, expected=broken.clone())
    assert judge([weight], 1e-4, [never], bool).agrees


def test_processes_repeat_together():
    runs = []
    judge([quantity(1.0, 1.0)], 1e-4, [lambda: runs.append(1)], lambda flag: True)
    assert runs == [1]


def test_the_summary_counts_and_measures():
    assert str(judge([quantity(1.0, 1.0), quantity(2.0, 2.0)], 1e-4, [], bool)) == "2 outputs (within 0)"
