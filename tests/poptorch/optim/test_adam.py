from __future__ import annotations

import inspect

import pytest
import torch

from poptorch.optim import Adam, AdamW

MOMENTS = ["accum_type", "first_order_momentum_accum_type", "second_order_momentum_accum_type"]


@pytest.mark.parametrize(
    ("kind", "extras"),
    [
        (Adam, ["loss_scaling", *MOMENTS, "max_grad_norm"]),
        (AdamW, ["loss_scaling", "bias_correction", *MOMENTS, "max_grad_norm"]),
    ],
)
def test_their_arguments_are_torchs_followed_by_poptorchs(kind, extras):
    torchs = ["params", "lr", "betas", "eps", "weight_decay", "amsgrad"]
    assert list(inspect.signature(kind).parameters)[: 6 + len(extras)] == torchs + extras


@pytest.mark.parametrize("kind", [Adam, AdamW])
def test_amsgrad_is_refused(kind):
    parameters = [torch.nn.Parameter(torch.ones(2))]
    assert kind(parameters, amsgrad=False).param_groups[0]["amsgrad"] is False
    with pytest.raises(ValueError, match="amsgrad"):
        kind(parameters, amsgrad=True)


@pytest.mark.parametrize("kind", [Adam, AdamW])
def test_amsgrad_of_one_group_is_refused(kind):
    with pytest.raises(ValueError, match="amsgrad"):
        kind([{"params": torch.nn.Parameter(torch.ones(2)), "amsgrad": True}])


def test_adamw_can_leave_out_bias_correction():
    weights = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer = AdamW([weights], lr=0.1, weight_decay=0.5, bias_correction=False)
    weights.grad = torch.full((1,), 2.0, dtype=torch.float64)
    optimizer.step()
    # First and second moment are 0.2 and 0.004 after the first gradient.
    assert weights.item() == pytest.approx(1 - 0.05 - 0.1 * 0.2 / (0.004**0.5 + 1e-8))
