from __future__ import annotations

import pytest
import torch

from poptorch import optim
from poptorch.optim.refining import check_settings, refinements_of, wants_running_mean


def parameters(dtype=torch.float32):
    return [torch.nn.Parameter(torch.ones(2, dtype=dtype))]


def test_explicit_arguments_are_variables_of_the_engine():
    optimizer = optim.Adam(parameters(), lr=0.1, betas=(0.5, 0.6), loss_scaling=2.0, max_grad_norm=1.0)
    refinements = refinements_of(optimizer)
    assert {"eps", "weight_decay"} <= refinements.constants
    assert not {"lr", "beta1", "beta2"} & refinements.constants
    assert refinements.plan_constants == frozenset()
    assert (refinements.loss_scaling, refinements.max_gradient_norm) == (2.0, 1.0)


def test_arguments_left_out_are_constants_even_the_learning_rate():
    refinements = refinements_of(optim.RMSprop(parameters()))
    assert {"lr", "alpha", "eps", "weight_decay", "momentum"} <= refinements.constants
    assert refinements.plan_constants == {"loss_scaling", "max_gradient_norm"}


def test_marking_an_attribute_reaches_the_engine():
    optimizer = optim.LAMB(parameters(), lr=0.1)
    optimizer.variable_attrs.markAsVariable("betas")
    optimizer.variable_attrs.markAsConstant("lr")
    constants = refinements_of(optimizer).constants
    assert "lr" in constants
    assert not {"beta1", "beta2"} & constants


def test_torchs_optimizers_leave_the_choice_of_constants_to_the_engine():
    refinements = refinements_of(torch.optim.SGD(parameters(), lr=0.1))
    assert refinements.constants is None
    assert refinements.plan_constants == {"loss_scaling", "max_gradient_norm"}
    assert refinements.bias_correction is None


def test_an_attribute_set_on_torchs_optimizer_is_variable():
    optimizer = torch.optim.SGD(parameters(), lr=0.1)
    optimizer.loss_scaling = 16.0
    refinements = refinements_of(optimizer)
    assert refinements.loss_scaling == 16.0
    assert refinements.plan_constants == {"max_gradient_norm"}


def test_automatic_loss_scaling_makes_the_loss_scaling_variable():
    refinements = refinements_of(optim.SGD(parameters(), lr=0.1), automatic_loss_scaling=True)
    assert refinements.plan_constants == {"max_gradient_norm"}


@pytest.mark.parametrize(
    ("optimizer", "first", "second"),
    [
        (optim.SGD(parameters(), lr=0.1, velocity_accum_type=torch.float16), torch.float16, torch.float32),
        (optim.Adam(parameters(), first_order_momentum_accum_type=torch.float16), torch.float16, torch.float32),
        (optim.LAMB(parameters(), second_order_momentum_accum_type=torch.float16), torch.float32, torch.float16),
        (torch.optim.Adam(parameters(torch.float16)), torch.float32, torch.float32),
        (optim.Adam(parameters(torch.bfloat16)), torch.float32, torch.float32),
        (optim.Adam(parameters(torch.float64)), None, None),
        (optim.Adam(parameters(torch.complex64)), None, None),
    ],
)
def test_moments_have_the_requested_types_and_at_least_float32_by_default(optimizer, first, second):
    refinements = refinements_of(optimizer)
    assert (refinements.first_moment_dtype, refinements.second_moment_dtype) == (first, second)


def test_the_accumulation_type_is_passed_on():
    assert refinements_of(optim.Adam(parameters(), accum_type=torch.float16)).accumulation_type == torch.float16
    assert refinements_of(torch.optim.Adam(parameters())).accumulation_type == torch.float32


def test_the_variants_of_adamw_and_rmsprop_are_passed_on():
    assert refinements_of(optim.AdamW(parameters(), bias_correction=False)).bias_correction is False
    assert refinements_of(optim.RMSprop(parameters(), use_tf_variant=True)).tensorflow is True


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"accum_type": torch.float16}, True),
        ({"accum_type": torch.float16, "use_combined_accum": True}, False),
    ],
)
def test_gradients_pooled_in_float16_use_a_running_mean(settings, expected):
    assert wants_running_mean(optim.SGD(parameters(), lr=0.1, **settings)) is expected


def test_settings_of_torchs_optimizers_are_checked_too():
    with pytest.raises(ValueError, match="amsgrad"):
        check_settings(torch.optim.Adam(parameters(), amsgrad=True))
    mixed = [{"params": parameters(), "centered": centered} for centered in (True, False)]
    with pytest.raises(AssertionError, match="centered"):
        check_settings(torch.optim.RMSprop(mixed))
