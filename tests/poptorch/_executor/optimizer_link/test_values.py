"""The values of an optimizer are read when it is set."""

from __future__ import annotations

import copy

import pytest
import torch

from poptorch import optim

pytestmark = pytest.mark.slow


def test_a_new_rate_is_used_only_after_set_optimizer(network, batch, training, changed_by):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(*batch)
    optimizer.param_groups[0]["lr"] = 0.0
    assert changed_by(model, module)
    model.setOptimizer(optimizer)
    assert not changed_by(model, module)


def test_values_changed_between_wrapping_and_compiling_are_not_used(network, training, changed_by):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    optimizer.param_groups[0]["lr"] = 0.0
    assert changed_by(model, module)


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: torch.optim.lr_scheduler.StepLR(o, step_size=2, gamma=0.5),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=6),
    ],
    ids=["StepLR", "LambdaLR", "OneCycleLR"],
)
def test_a_schedule_is_followed_without_compiling_again(
    schedule, warnings_of_poptorch, network, batch, training, step_eagerly, assert_same
):
    module, twin = network(), network()
    optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    reference = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    model = training(module, optimizer)
    schedules = schedule(optimizer), schedule(reference)
    model.setOptimizer(optimizer)
    for _ in range(5):
        model(*batch)
        step_eagerly(twin, reference)
        for each in schedules:
            each.step()
        model.setOptimizer(optimizer)
    assert_same(module, twin)
    assert model.engine.record.compilations == 1
    assert warnings_of_poptorch() == []


def test_each_group_of_parameters_has_its_own_values(network, batch, training, step_eagerly, assert_same):
    def groups(module):
        return [
            {"params": module.first.parameters(), "lr": 0.5, "weight_decay": 0.1},
            {"params": [module.second.weight]},
            {"params": [module.second.bias], "lr": 0.0},
        ]

    module, twin = network(), network()
    optimizer = optim.SGD(groups(module), lr=0.1)
    reference = torch.optim.SGD(groups(twin), lr=0.1)
    model = training(module, optimizer)
    for rates in ((0.5, 0.1, 0.0), (0.0, 0.3, 0.2)):
        for group, other, rate in zip(optimizer.param_groups, reference.param_groups, rates, strict=True):
            group["lr"] = other["lr"] = rate
        model.setOptimizer(optimizer)
        for _ in range(2):
            model(*batch)
            step_eagerly(twin, reference)
        assert_same(module, twin)


def test_parameters_outside_of_all_groups_do_not_change(network, batch, training):
    module = network()
    before = copy.deepcopy(module)
    training(module, optim.SGD(module.first.parameters(), lr=0.1))(*batch)
    assert torch.equal(module.second.weight, before.second.weight)
    assert not torch.equal(module.first.weight, before.first.weight)


def test_parameters_without_gradients_do_not_change(network, batch, training):
    module = network()
    module.first.requires_grad_(False)
    before = copy.deepcopy(module)
    training(module, optim.SGD(module.parameters(), lr=0.1, weight_decay=0.1))(*batch)
    assert torch.equal(module.first.weight, before.first.weight)
    assert not torch.equal(module.second.weight, before.second.weight)
