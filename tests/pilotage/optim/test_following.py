from __future__ import annotations

import copy
from types import MethodType

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError

INPUTS = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 2)

    def forward(self, inputs):
        return self.second(self.first(inputs)).square().mean()


def append(module, optimizer):
    optimizer.param_groups[0]["params"].extend(module.first.parameters())


def replace(module, optimizer):
    optimizer.param_groups[0]["params"] = list(module.first.parameters())


def freeze(module, optimizer):
    module.second.requires_grad_(False)


@pytest.mark.parametrize("change", [append, replace])
def test_other_parameters_in_a_group_are_trained_as_in_eager(change):
    torch.manual_seed(0)
    module = Network()
    twin = copy.deepcopy(module)
    optimizer, eager = (torch.optim.SGD(each.second.parameters(), lr=0.1, momentum=0.9) for each in (module, twin))
    step = pilotage.training(module, optimizer, tier="graph")
    for number in range(4):
        if number == 2:
            change(module, optimizer)
            change(twin, eager)
        step(INPUTS)
        twin.zero_grad()
        twin(INPUTS).backward()
        eager.step()
    for one, other in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_an_optimizer_without_parameters_is_refused_until_they_are_restored():
    module = Network()
    optimizer = torch.optim.SGD(module.second.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, tier="graph")
    step(INPUTS)
    before = step.state_dict()
    freeze(module, optimizer)
    for _ in range(2):
        with pytest.raises(OptionError, match="holds no parameter"):
            step(INPUTS)
    assert all(torch.equal(value, before[name]) for name, value in step.state_dict().items())
    module.second.requires_grad_(True)
    step(INPUTS)
    assert not torch.equal(module.second.weight, before["second.weight"])


def add_a_post_hook(optimizer):
    optimizer.register_step_post_hook(lambda *_: None)


def add_a_pre_hook(optimizer):
    optimizer.register_step_pre_hook(lambda *_: None)


def patch_the_step(optimizer):
    optimizer.step = MethodType(lambda self: None, optimizer)


WAYS = [
    (add_a_post_hook, "the step post-hook add_a_post_hook"),
    (add_a_pre_hook, "the step pre-hook"),
    (patch_the_step, r"its own step\(\)"),
]


@pytest.mark.parametrize(("change", "name"), WAYS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scheduled", [False, True])
def test_code_around_the_steps_of_the_optimizer_is_refused_by_name(change, name, when, scheduled):
    module = Network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    if when == "before":
        change(optimizer)
        if scheduled:
            torch.optim.lr_scheduler.StepLR(optimizer, 1)
        with pytest.raises(OptionError, match=f"The SGD optimizer has {name}"):
            pilotage.training(module, optimizer, tier="graph")
        return
    if scheduled:
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = pilotage.training(module, optimizer, tier="graph")
    step(INPUTS)
    change(optimizer)
    for _ in range(2):
        with pytest.raises(OptionError, match=f"The SGD optimizer has {name}"):
            step(INPUTS)


def test_a_scheduler_that_wraps_the_step_does_not_count_as_user_code():
    module = Network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, tier="graph")
    step(INPUTS)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.0)
    step(INPUTS)
    scheduler.step()
    before = module.first.weight.clone()
    step(INPUTS)
    assert torch.equal(module.first.weight, before)
