from __future__ import annotations

import inspect

import pytest
import torch

from poptorch.optim import RMSprop


def test_its_arguments_are_torchs_followed_by_poptorchs():
    assert list(inspect.signature(RMSprop).parameters)[:12] == [
        "params",
        "lr",
        "alpha",
        "eps",
        "weight_decay",
        "momentum",
        "centered",
        "loss_scaling",
        "accum_type",
        "first_order_momentum_accum_type",
        "second_order_momentum_accum_type",
        "use_tf_variant",
    ]


def test_centered_must_be_the_same_for_all_groups():
    groups = [{"params": torch.nn.Parameter(torch.ones(1)), "centered": centered} for centered in (True, False)]
    with pytest.raises(AssertionError, match="centered"):
        RMSprop(groups)
    for group in groups:
        group["centered"] = True
    RMSprop(groups)


def test_the_tensorflow_variant_starts_from_ones_and_folds_the_rate_into_the_buffer():
    weights = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer = RMSprop([weights], lr=0.1, alpha=0.9, momentum=0.5, eps=0.25, use_tf_variant=True)
    weights.grad = torch.full((1,), 2.0, dtype=torch.float64)
    optimizer.step()
    velocity = 0.1 * 2 / (0.9 + 0.1 * 4 + 0.25) ** 0.5
    assert weights.item() == pytest.approx(1 - velocity)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    assert weights.item() == pytest.approx(1 - velocity - 0.5 * velocity)
