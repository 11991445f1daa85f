from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from poptorch import optim
from poptorch.optim.handover import OptimizerReader
from poptorch.optim.value_names import from_ipu_param, to_ipu_param


def plan_of(kind, **settings):
    module = nn.Sequential()
    module.add_module("lin", nn.Linear(2, 1))
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    return OptimizerReader().plan(kind(module.parameters(), **settings), names)


def test_sgd_writes_scaled_rates():
    plan = plan_of(optim.SGD, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.25, loss_scaling=4.0)
    named = to_ipu_param(plan)
    assert named["scaledLearningRate0___specific___lin.weight"].item() == pytest.approx(0.1 * 0.5 / 4.0)
    assert named["weightDecayScaleFactor0___specific___lin.bias"].item() == pytest.approx(1 - 0.1 * 0.5 * 0.25)
    assert named["momentum___specific___lin.weight"].item() == pytest.approx(0.9)
    assert named["lossScaling_FLOAT"].item() == 4.0


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW, optim.RMSprop, optim.LAMB])
def test_others_write_their_values_for_each_parameter(kind):
    named = to_ipu_param(plan_of(kind, lr=0.5, weight_decay=0.125))
    for name in ("lin.weight", "lin.bias"):
        assert named[f"learningRate___specific___{name}"].item() == 0.5
        assert named[f"weightDecay___specific___{name}"].item() == 0.125
        assert named[f"eps___specific___{name}"].item() == pytest.approx(1e-8)
    assert named["lossScaling_FLOAT"].item() == 1.0


def test_values_that_did_not_change_keep_all_their_digits():
    plan = plan_of(optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.3, dampening=0.7, loss_scaling=3.0)
    assert from_ipu_param(plan, to_ipu_param(plan)) == plan


numbers = st.floats(1e-3, 1.0)


@given(before=st.tuples(*[numbers] * 5), after=st.tuples(*[numbers] * 5))
@settings(max_examples=40, deadline=None)
def test_the_values_of_sgd_survive_a_round_trip(before, after):
    names = ("lr", "momentum", "dampening", "weight_decay", "loss_scaling")
    first, second = (
        plan_of(optim.SGD, **dict(zip(names, v, strict=True))) for v in (before, [*after[:2], after[2] / 2, *after[3:]])
    )
    read = from_ipu_param(first, to_ipu_param(second))
    assert read.loss_scaling == pytest.approx(second.loss_scaling, rel=1e-6)
    for name in ("lr", "momentum", "dampening"):
        assert read.groups[0].values[name] == pytest.approx(second.groups[0].values[name], rel=1e-5)
    # A small decay is written as a number close to one, which leaves few digits for it.
    rate = second.groups[0].values["lr"] * (1 - second.groups[0].values["dampening"])
    assert read.groups[0].values["weight_decay"] == pytest.approx(
        second.groups[0].values["weight_decay"], abs=3e-7 / rate
    )


def test_a_full_dampening_does_not_determine_the_rate():
    plan = plan_of(optim.SGD, lr=0.1, momentum=0.9, dampening=1.0, weight_decay=0.1)
    written = {"scaledLearningRate0___specific___lin.weight": torch.tensor(0.5)}
    assert from_ipu_param(plan, written).groups[0].values["lr"] == 0.1


def test_constants_keep_their_compiled_values():
    plan = plan_of(optim.Adam, lr=0.1)
    other = plan_of(optim.Adam, lr=0.2, eps=0.5, loss_scaling=2.0)
    read = from_ipu_param(plan, to_ipu_param(other))
    assert read.groups[0].values["lr"] == pytest.approx(0.2)
    assert read.groups[0].values["eps"] == 1e-8
    assert read.loss_scaling == 1.0


def test_values_that_are_not_written_stay():
    plan = plan_of(optim.RMSprop, lr=0.1, momentum=0.5)
    written = {"momentum___specific___lin.weight": torch.tensor(0.25)}
    assert from_ipu_param(plan, written).groups[0].values == {**plan.groups[0].values, "momentum": 0.25}
