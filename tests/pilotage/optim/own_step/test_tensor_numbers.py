"""Tensors where an optimizer's code expects numbers."""

from __future__ import annotations

import math

import pytest
import torch

from pilotage.optim.own_step.tensor_numbers import TensorMath, largest, smallest, tensors_as_numbers

CALLS = {
    "add_": lambda a, b, c, number: a.clone().add_(b, alpha=number),
    "sub": lambda a, b, c, number: a.sub(b, alpha=number),
    "add a number": lambda a, b, c, number: torch.add(a, 2.0, alpha=number),
    "addcmul_": lambda a, b, c, number: a.clone().addcmul_(b, c, value=number),
    "addcdiv": lambda a, b, c, number: torch.addcdiv(a, b, c, value=number),
    "lerp_": lambda a, b, c, number: a.clone().lerp_(b, number),
    "lerp": lambda a, b, c, number: torch.lerp(a, b, weight=number),
    "foreach_add": lambda a, b, c, number: torch._foreach_add([a], [b], alpha=number)[0],
    "foreach_addcdiv": lambda a, b, c, number: torch._foreach_addcdiv([a], [b], [c], value=number)[0],
}


@pytest.mark.parametrize("call", CALLS)
def test_a_tensor_has_the_effect_of_its_number(call):
    torch.manual_seed(0)
    a, b, c = torch.randn(3, 4).unbind()
    c = c.abs() + 1
    expected = CALLS[call](a, b, c, 0.3)
    with tensors_as_numbers(torch.optim.Adamax):
        found = CALLS[call](a, b, c, torch.tensor(0.3, dtype=torch.float64))
        same = CALLS[call](a, b, c, 0.3)
    torch.testing.assert_close(found, expected)
    assert torch.equal(same, expected)


def test_item_leaves_a_tensor_whose_number_is_not_needed():
    with tensors_as_numbers(torch.optim.Adamax):
        assert isinstance(torch.ones(1).item(), torch.Tensor)
    assert torch.ones(1).item() == 1.0


def test_smallest_and_largest_mix_numbers_and_tensors():
    assert smallest(3, 2) == 2
    assert largest([1, 5]) == 5
    assert float(smallest(torch.tensor(2.0), 3)) == 2.0
    assert float(largest(1.0, torch.tensor(0.5), 4)) == 4.0


def test_math_of_tensors_and_numbers():
    assert TensorMath().pi == math.pi
    assert TensorMath().sqrt(4) == 2.0
    assert torch.equal(TensorMath().sqrt(torch.tensor(4.0)), torch.tensor(2.0))
    assert torch.equal(TensorMath().pow(torch.tensor(3.0), 2), torch.tensor(9.0))


def test_the_modules_are_left_as_they_were():
    import torch.optim.adamax as home

    before = dict(vars(home))
    with tensors_as_numbers(torch.optim.Adamax):
        assert vars(home)["max"] is largest
    assert vars(home) == before
