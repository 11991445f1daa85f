from dataclasses import replace

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


def test_what_rounding_does_not_explain_is_a_mismatch():
    verdict = judge([quantity(1.0, 1.5), quantity(2.0, 2.0)], 1e-4, [outcome(1.501), lambda: None], bool)
    assert not verdict.agrees
    (mismatch,) = verdict.mismatches
    assert "output is 1 in the program and 1.5 in eager PyTorch" in str(mismatch)


def test_a_result_that_is_not_a_number_is_a_mismatch():
    assert not judge([quantity(float("nan"), 1.0)], 1e-4, [outcome(1.0)], bool).agrees


def test_processes_repeat_together():
    runs = []
    judge([quantity(1.0, 1.0)], 1e-4, [lambda: runs.append(1)], lambda flag: True)
    assert runs == [1]


def test_the_summary_counts_and_measures():
    assert str(judge([quantity(1.0, 1.0), quantity(2.0, 2.0)], 1e-4, [], bool)) == "2 outputs (within 0)"
