from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from pilotage.errors import OptionError
from pilotage.optim.adam import AdamRule
from pilotage.optim.families import Refinements
from pilotage.optim.lamb import Lamb, LambRule
from pilotage.optim.reading import read_optimizer, runs_python_code
from pilotage.optim.rmsprop import RmspropRule
from pilotage.optim.sgd import SgdRule


@pytest.fixture
def module():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))


def names_of(module):
    return {id(parameter): name for name, parameter in module.named_parameters()}


def two_groups(module, **second):
    return [{"params": module[0].parameters()}, {"params": module[1].parameters(), **second}]


def test_groups_keep_the_order_and_the_names_of_their_parameters(module):
    plan = read_optimizer(torch.optim.SGD(two_groups(module, lr=0.5), lr=0.1), names_of(module))
    assert [group.parameters for group in plan.groups] == [("0.weight", "0.bias"), ("1.weight", "1.bias")]
    assert [group.values["lr"] for group in plan.groups] == [0.1, 0.5]
    assert (plan.loss_scaling, plan.max_gradient_norm, plan.accumulation_type) == (1.0, float("inf"), torch.float32)
    assert plan.constants == {"loss_scaling", "max_gradient_norm"}


def test_sgd_is_read_group_by_group(module):
    groups = two_groups(module, momentum=0.9, nesterov=True, weight_decay=0.1)
    first, second = read_optimizer(torch.optim.SGD(groups, lr=0.1, maximize=True), names_of(module)).groups
    assert first.rule == SgdRule(maximize=True)
    assert first.constants == {"momentum", "dampening", "weight_decay"}
    assert second.rule == SgdRule(momentum=True, nesterov=True, maximize=True)
    assert second.constants == {"dampening"}
    assert second.values == {"lr": 0.1, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.1}


def test_adam_is_read_group_by_group(module):
    groups = two_groups(module, eps=1e-6, betas=(0.5, 0.6), amsgrad=True)
    first, second = read_optimizer(torch.optim.Adam(groups), names_of(module)).groups
    assert first.rule == AdamRule()
    assert first.constants == {"beta1", "beta2", "eps", "weight_decay"}
    assert second.rule == AdamRule(amsgrad=True)
    assert second.constants == {"beta1", "beta2", "weight_decay"}
    assert second.values == {"lr": 1e-3, "beta1": 0.5, "beta2": 0.6, "eps": 1e-6, "weight_decay": 0.0}


def test_adamw_is_read_group_by_group(module):
    groups = two_groups(module, weight_decay=0.0)
    first, second = read_optimizer(torch.optim.AdamW(groups), names_of(module)).groups
    assert first.rule == second.rule == AdamRule(decoupled_weight_decay=True)
    assert first.constants == {"beta1", "beta2", "eps", "weight_decay"}
    assert second.constants == {"beta1", "beta2", "eps"}


def test_rmsprop_is_read_group_by_group(module):
    groups = two_groups(module, momentum=0.5, centered=True, alpha=0.8)
    first, second = read_optimizer(torch.optim.RMSprop(groups), names_of(module)).groups
    assert first.rule == RmspropRule()
    assert first.constants == {"alpha", "eps", "weight_decay", "momentum"}
    assert second.rule == RmspropRule(momentum=True, centered=True)
    assert second.constants == {"alpha", "eps", "weight_decay"}
    assert second.values == {"lr": 1e-2, "alpha": 0.8, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.5}


def test_lamb_is_read_group_by_group(module):
    groups = two_groups(module, max_weight_norm=10.0)
    first, second = read_optimizer(Lamb(groups, bias_correction=False), names_of(module)).groups
    assert first.rule == second.rule == LambRule(bias_correction=False)
    assert first.constants == {"beta1", "beta2", "eps", "weight_decay", "max_weight_norm"}
    assert second.constants == {"beta1", "beta2", "eps", "weight_decay"}
    assert second.values["max_weight_norm"] == 10.0


def test_a_learning_rate_given_as_a_tensor_is_read_as_a_number(module):
    plan = read_optimizer(torch.optim.Adam(module.parameters(), lr=torch.tensor(0.25)), names_of(module))
    assert plan.groups[0].values["lr"] == 0.25
    assert isinstance(plan.groups[0].values["lr"], float)


def test_refinements_reach_rules_and_plan(module):
    refinements = Refinements(
        loss_scaling=128.0,
        max_gradient_norm=1.0,
        accumulation_type=torch.float16,
        plan_constants=frozenset({"max_gradient_norm"}),
        constants=frozenset({"lr", "centered", "unknown"}),
        first_moment_dtype=torch.float16,
        second_moment_dtype=torch.float32,
        tensorflow=True,
    )
    plan = read_optimizer(torch.optim.RMSprop(module.parameters()), names_of(module), refinements=refinements)
    assert plan.groups[0].constants == {"lr"}
    assert plan.groups[0].rule == RmspropRule(
        momentum=True, tensorflow=True, first_moment_dtype=torch.float16, second_moment_dtype=torch.float32
    )
    assert (plan.loss_scaling, plan.max_gradient_norm, plan.accumulation_type) == (128.0, 1.0, torch.float16)
    assert plan.constants == {"max_gradient_norm"}


@pytest.mark.parametrize("kind", [torch.optim.AdamW, Lamb])
def test_bias_correction_can_be_switched_off(module, kind):
    refinements = Refinements(bias_correction=False)
    plan = read_optimizer(kind(module.parameters()), names_of(module), refinements=refinements)
    assert plan.groups[0].rule.bias_correction is False


def test_parameters_of_other_modules_are_left_out_with_one_warning(module):
    other = nn.Linear(1, 1)
    optimizer = torch.optim.SGD([{"params": other.parameters()}, {"params": module.parameters()}], lr=0.1)
    with pytest.warns(UserWarning, match="^2 of the optimizer's parameters") as caught:
        plan = read_optimizer(optimizer, names_of(module))
    assert len(caught) == 1
    assert [group.parameters for group in plan.groups] == [("0.weight", "0.bias", "1.weight", "1.bias")]


def test_frozen_parameters_are_left_out_without_a_warning(module):
    module[0].requires_grad_(False)
    plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names_of(module))
    assert plan.groups[0].parameters == ("1.weight", "1.bias")


@pytest.mark.filterwarnings("ignore:2 of the optimizer's parameters")
def test_an_optimizer_of_another_module_is_refused(module):
    with pytest.raises(OptionError, match="holds no parameter of the module"):
        read_optimizer(torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1), names_of(module))


def test_an_unknown_optimizer_is_refused_with_those_that_work(module):
    with pytest.raises(
        OptionError, match=r"Adagrad cannot .* torch's SGD, .*AdamW, .*Adam, .*RMSprop, pilotage's Lamb"
    ):
        read_optimizer(torch.optim.Adagrad(module.parameters()), names_of(module))


def test_a_differentiable_update_is_refused(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, differentiable=True)
    with pytest.raises(OptionError, match="differentiable=True"):
        read_optimizer(optimizer, names_of(module))


class Preset(torch.optim.SGD):
    def __init__(self, parameters):
        super().__init__(parameters, lr=0.1, momentum=0.8)


class Own(Preset):
    def step(self, closure=None):
        return super().step(closure)


def test_a_subclass_that_presets_arguments_is_read_like_its_base(module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = read_optimizer(Preset(module.parameters()), names_of(module))
    assert plan.groups[0].values["momentum"] == 0.8


def test_a_subclass_that_overrides_step_causes_a_warning(module):
    optimizer = Own(module.parameters())
    assert runs_python_code(optimizer)
    with pytest.warns(UserWarning, match=r"Own overrides step\(\).* as SGD does"):
        read_optimizer(optimizer, names_of(module))


def test_a_later_reading_keeps_what_was_compiled_as_variable(module):
    names = names_of(module)
    before = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), names)
    changed = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.0)
    assert read_optimizer(changed, names).groups[0].rule != before.groups[0].rule
    after = read_optimizer(changed, names, like=before)
    assert after.groups[0].rule == before.groups[0].rule
    assert after.groups[0].constants == before.groups[0].constants
    assert after.groups[0].values["momentum"] == 0.0
