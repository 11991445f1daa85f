from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pilotage.optim.comparing import changed_constants, with_values_of
from pilotage.optim.rule import Group, OptimizerPlan
from pilotage.optim.sgd import SgdRule

VALUES = {"lr": 0.1, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.5}
GROUP = Group(rule=SgdRule(), parameters=("a", "b"), values=VALUES, constants=frozenset({"momentum", "weight_decay"}))
PLAN = OptimizerPlan(groups=(GROUP,), constants=frozenset({"max_gradient_norm"}))


def with_group(**changes):
    return replace(PLAN, groups=(replace(GROUP, **changes),))


@pytest.mark.parametrize(
    "wanted",
    [
        PLAN,
        with_group(values=VALUES | {"lr": 0.2, "dampening": 0.1}),
        with_group(constants=frozenset()),
        replace(PLAN, loss_scaling=8.0),
    ],
)
def test_variable_values_change_freely(wanted):
    assert changed_constants(PLAN, wanted) == []


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (with_group(values=VALUES | {"weight_decay": 0.0}), "group 0: weight_decay from 0.5 to 0.0"),
        (with_group(parameters=("a",)), "group 0: parameters from ['a', 'b'] to ['a']"),
        (replace(PLAN, groups=(GROUP, GROUP)), "number of groups from 1 to 2"),
        (replace(PLAN, max_gradient_norm=1.0), "max_gradient_norm from inf to 1.0"),
        (
            replace(PLAN, accumulation_type=torch.float16),
            "accumulation_type from torch.float32 to torch.float16",
        ),
    ],
)
def test_each_change_of_a_constant_is_named(wanted, said):
    assert changed_constants(PLAN, wanted) == [said]


def test_another_formula_is_named():
    (said,) = changed_constants(PLAN, with_group(rule=SgdRule(maximize=True)))
    assert said.startswith("group 0: rule from SgdRule(")
    assert "maximize=True" in said


def test_all_changes_are_named_at_once():
    wanted = replace(with_group(values=VALUES | {"weight_decay": 0.0, "momentum": 0.9}), max_gradient_norm=1.0)
    assert len(changed_constants(PLAN, wanted)) == 3


def test_new_values_do_not_turn_constants_into_variables():
    wanted = replace(with_group(values=VALUES | {"lr": 0.2}, constants=frozenset()), loss_scaling=8.0)
    updated = with_values_of(PLAN, wanted)
    assert updated.groups[0].values["lr"] == 0.2
    assert updated.loss_scaling == 8.0
    assert updated.groups[0].constants == GROUP.constants
    assert changed_constants(updated, with_group(values=VALUES | {"weight_decay": 0.0})) != []
