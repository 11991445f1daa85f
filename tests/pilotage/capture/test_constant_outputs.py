"""Outputs that are the same in every run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.capture.constant_outputs import constant_outputs

OUTSIDE = torch.tensor([7.0, 8.0])


class Returning(nn.Module):
    def __init__(self, values) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.values = values

    def forward(self, x):
        return x + self.weight, self.values(self, x)


def written_with(value):
    def values(self, x):
        result = torch.zeros(2)
        result[0] = value(x)
        return result

    return values


VALUES = {
    "an outside tensor": (lambda self, x: OUTSIDE, True),
    "computed from an outside tensor": (lambda self, x: OUTSIDE.long() + 1, True),
    "made in forward": (lambda self, x: torch.ones(2), True),
    "written with a number": (written_with(lambda x: 3.0), True),
    "written with an input": (written_with(lambda x: x[0, 0]), False),
    "random": (lambda self, x: torch.rand(2), False),
    "an input": (lambda self, x: x[0] * 1, False),
    "a weight": (lambda self, x: self.weight, False),
}


@pytest.fixture(params=VALUES)
def case(request):
    return VALUES[request.param]


def test_constant_and_varying_outputs_are_distinguished(case):
    values, constant = case
    step = pilotage.inference(Returning(values))
    step(torch.ones(1, 2))
    (computation,) = step._executor.session.program.computations.values()
    assert constant_outputs(computation.graph) == ((1,) if constant else ())


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("mode", ["all", "final", "sum"])
def test_a_constant_is_returned_once_and_other_outputs_by_the_schedule(case, mode, tier):
    values, constant = case
    step = pilotage.inference(Returning(values), device_iterations=3, outputs=mode, tier=tier)
    sums, value = step(torch.ones(3, 2))
    assert len(sums) == (3 if mode == "all" else 1)
    assert len(value) == (6 if mode == "all" and not constant else 2)
    if constant:
        torch.testing.assert_close(value, values(None, None), rtol=0, atol=0)


def test_changing_a_result_does_not_change_the_constant():
    step = pilotage.inference(Returning(lambda self, x: OUTSIDE))
    for _ in range(2):
        value = step(torch.ones(1, 2))[1]
        assert value.tolist() == [7.0, 8.0]
        value.zero_()
    assert OUTSIDE.tolist() == [7.0, 8.0]
