from __future__ import annotations

import inspect

import pytest
import torch

from poptorch.optim import LAMB


def test_its_arguments_are_poptorchs():
    assert list(inspect.signature(LAMB).parameters) == [
        "params",
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "bias_correction",
        "loss_scaling",
        "max_weight_norm",
        "accum_type",
        "first_order_momentum_accum_type",
        "second_order_momentum_accum_type",
    ]


def test_its_groups_have_poptorchs_defaults():
    (group,) = LAMB([torch.nn.Parameter(torch.ones(2))]).param_groups
    assert group["lr"] == 1e-3
    assert group["betas"] == (0.9, 0.999)
    assert group["eps"] == 1e-8
    assert group["weight_decay"] == 1e-2
    assert group["max_weight_norm"] == 65500


@pytest.mark.parametrize(("bias_correction", "direction"), [(None, 1.0), (False, 0.1 / 0.001**0.5)])
def test_bias_correction_can_be_left_out(bias_correction, direction):
    weights = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = LAMB([weights], lr=0.1, bias_correction=bias_correction)
    weights.grad = torch.ones(1, dtype=torch.float64)
    optimizer.step()
    assert weights.item() == pytest.approx(-0.1 * direction, rel=1e-4)
