"""Data flow in the eager tier."""

from __future__ import annotations

import pytest
import torch

from pilotage.capture.constant_outputs import DataFlow

OUTSIDE = torch.tensor([7.0, 8.0])


def written(x):
    result = torch.zeros(2)
    result.view(-1)[0] = x[0]
    return result


VARYING = {
    "computed from an argument": lambda x: x * 2 + 1,
    "a view of an argument": lambda x: x[:1],
    "written through a view": written,
    "random": lambda x: torch.rand(2),
    "filled at random": lambda x: torch.zeros(2).normal_(),
    "made of a number that was read": lambda x: torch.full((2,), x.sum().item()),
    "made of a list that was read": lambda x: torch.tensor(x.tolist()),
    "made of an array that was read": lambda x: torch.from_numpy(x.numpy() + 1),
    "chosen by a value": lambda x: torch.ones(2) if x.sum() > 0 else torch.zeros(2),
}


def literal_in_used_memory(x):
    """A literal, which soon gets the freed memory of intermediate results."""
    x.sum().mul(2).add(1)
    return torch.tensor(3.0)


CONSTANT = {
    "made": lambda x: torch.ones(2),
    "a literal where something else was": literal_in_used_memory,
    "outside": lambda x: OUTSIDE,
    "computed from outside": lambda x: (OUTSIDE + 1)[None],
    "made beside the arguments": lambda x: (x * 2, torch.arange(3))[1],
    "of the arguments' shape": lambda x: torch.full((x.shape[0],), 3.0),
    "made of a number that was read outside": lambda x: torch.full((2,), OUTSIDE[0].item()),
}


@pytest.mark.parametrize("make", VARYING.values(), ids=VARYING)
def test_results_of_arguments_or_random_numbers_vary(make):
    x = torch.tensor([1.0, 2.0])
    with DataFlow([x]) as flow:
        result = make(x)
    assert flow.varies(result)


@pytest.mark.parametrize("make", CONSTANT.values(), ids=CONSTANT)
def test_other_results_are_constant(make):
    x = torch.tensor([1.0, 2.0])
    with DataFlow([x]) as flow:
        result = make(x)
    assert not flow.varies(result)
