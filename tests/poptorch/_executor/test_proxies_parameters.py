"""Parameters as the attributes of a wrapped model."""

from __future__ import annotations

import operator

import pytest
import torch
from torch import nn

import poptorch


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return nn.Linear(2, 2)


@pytest.fixture
def wrapped(layer):
    return poptorch.inferenceModel(layer)


TWO_SIDED = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.ge,
    operator.eq,
]


@pytest.mark.parametrize("operation", TWO_SIDED)
def test_a_parameter_proxy_works_on_both_sides_of_an_operator(layer, wrapped, operation):
    for left, right, expected_left, expected_right in [
        (wrapped.weight, 2.0, layer.weight, 2.0),
        (2.0, wrapped.weight, 2.0, layer.weight),
        (wrapped.weight, wrapped.weight, layer.weight, layer.weight),
        (torch.ones(2, 2), wrapped.weight, torch.ones(2, 2), layer.weight),
    ]:
        torch.testing.assert_close(
            operation(left, right), operation(expected_left, expected_right), rtol=0, atol=0, equal_nan=True
        )


def test_a_parameter_proxy_works_with_functions_and_methods(layer, wrapped):
    assert torch.equal(wrapped.weight, layer.weight)
    assert torch.equal(-wrapped.weight @ wrapped.weight, -layer.weight @ layer.weight)
    assert torch.equal(torch.stack([wrapped.weight, wrapped.weight])[1], layer.weight)
    assert wrapped.weight.shape == (2, 2)
    assert float(wrapped.bias.detach()[0]) == float(layer.bias.detach()[0])
    assert len(list(wrapped.weight)) == 2


def test_writing_to_a_parameter_proxy_writes_to_the_parameter(layer, wrapped):
    with torch.no_grad():
        wrapped.weight[0] = 5.0
        wrapped.bias.fill_(3.0)
    assert layer.weight[0].tolist() == [5.0, 5.0]
    assert layer.bias.tolist() == [3.0, 3.0]
