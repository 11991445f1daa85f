"""The ten most common kinds of data-dependent code, as PopTorch users meet them."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import poptorch

X = torch.tensor([0.0, 2.0, 3.0])
COUNTS = torch.tensor([1, 0, 2])

COMMON = {
    "nonzero": (lambda x, counts: x.nonzero(), "torch.nonzero_static(x, size=n)"),
    "masked_select": (lambda x, counts: torch.masked_select(x, x > 0), "torch.where(mask, x, 0)"),
    "unique": (lambda x, counts: torch.unique(x), "values[1:] != values[:-1]"),
    "__getitem__": (lambda x, counts: x[x > 0], "torch.where(mask, x, 0)"),
    "item": (lambda x, counts: x * x.sum().item(), "Keep it as a tensor"),
    "item of a list": (lambda x, counts: x * counts.tolist()[0], "values.unbind()"),
    "__bool__": (lambda x, counts: x if x.sum() > 0 else -x, "torch.where(condition, one, other)"),
    "numpy": (lambda x, counts: x * x.numpy().mean(), "torch's own operations"),
    "repeat_interleave": (lambda x, counts: x.repeat_interleave(counts), "output_size=n"),
}


class Model(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x, counts):
        return self.function(x, counts)


@pytest.mark.parametrize("name", COMMON)
def test_the_error_names_the_function_the_users_line_and_a_rewrite(name):
    function, rewrite = COMMON[name]
    model = poptorch.inferenceModel(Model(function), poptorch.Options().showCompilationProgressBar(False))
    with pytest.raises(poptorch.Error) as refused:
        model(X, COUNTS)
    assert refused.value.type == "pilotage_data_dependent_error"
    assert re.search(rf"\((?:\w+\.)+{name.partition(' ')[0]}\)", str(refused.value))
    assert rewrite in str(refused.value)
    assert f"\n  at {__file__}:{function.__code__.co_firstlineno} in <lambda>: " in str(refused.value)


def test_bincount_has_the_error_of_poptorch_and_names_the_users_line():
    function = lambda x, counts: torch.bincount(counts)  # noqa: E731
    model = poptorch.inferenceModel(Model(function), poptorch.Options().showCompilationProgressBar(False))
    with pytest.raises(
        poptorch.Error, match=r"`minlength` must be specified.*torch.bincount\(x, minlength=n\)"
    ) as refused:
        model(X, COUNTS)
    assert f"{__file__}:{function.__code__.co_firstlineno}" in str(refused.value)


def test_the_model_runs_once_it_is_rewritten():
    model = poptorch.inferenceModel(
        Model(lambda x, counts: torch.where(x > 0, x, 0)), poptorch.Options().showCompilationProgressBar(False)
    )
    assert torch.equal(model(X, COUNTS), X)
