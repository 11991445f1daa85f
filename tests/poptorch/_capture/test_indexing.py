"""Masks of uint8, and sizes that depend on values."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from pilotage.torch_private import DynamicOutputShapeException

X = torch.tensor([[1.0, -2.0, 3.0]])


def run(function, *given):
    class Model(nn.Module):
        def forward(self, *args):
            return function(*args)

    return poptorch.inferenceModel(Model())(*given)


def assign(x, mask):
    y = x.clone()
    y[mask] = 0.0
    return y


def assign_to_all(x, mask):
    y = x.clone()
    y[mask] = torch.full_like(x, 7.0)[0, 0]
    return y


@pytest.mark.parametrize("function", [assign, assign_to_all, lambda x, mask: x.masked_fill(mask, 5.0)])
def test_uint8_masks_select_like_boolean_ones(function):
    mask = X > 0
    assert torch.equal(run(function, X, mask.to(torch.uint8)), function(X, mask))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (functional.one_hot, r"OneHot num classes must be specified and must be constant\."),
        (
            torch.bincount,
            r"Bincount `minlength` must be specified and must be a constant\. On the IPU MK2 platform the minimum "
            "length is also the maximum length",
        ),
    ],
)
def test_sizes_that_depend_on_values_are_refused_in_poptorchs_words(function, said):
    with pytest.raises(poptorch.Error, match=said):
        run(function, torch.tensor([0, 2]))


def test_sizes_that_are_given_are_used():
    assert run(lambda x: functional.one_hot(x, 3), torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert run(lambda x: torch.bincount(x, minlength=3), torch.tensor([0, 2])).tolist() == [1, 0, 1]


def test_a_selection_of_unknown_size_is_torchs_error_as_well():
    with pytest.raises(DynamicOutputShapeException) as caught:
        run(lambda x: x[x > 0], X)
    assert isinstance(caught.value, poptorch.Error)
    assert "torch.where(mask, x, 0)" in str(caught.value)
