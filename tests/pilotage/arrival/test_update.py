"""The reference update against torch's own optimizers, step by step."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from pilotage.arrival.update import update_eagerly
from pilotage.optim.families import FAMILIES, family_of
from pilotage.optim.lamb import Lamb
from pilotage.optim.reading import read_optimizer
from pilotage.program.layout import Slot, StateLayout

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, betas=(0.8, 0.95)),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "lamb": lambda p: Lamb(p, lr=0.01),
}


def initial_slots(plan, layout, parameters):
    return {
        slot: group.rule.initial(slot.name, parameters[slot.parameter])
        for slot in layout.slots
        for group in plan.groups
    }


def test_every_family_of_optimizers_has_a_reference():
    parameters = [nn.Parameter(torch.zeros(2))]
    compared = [family_of(make(parameters)) for make in OPTIMIZERS.values()]
    assert [family.rule.__name__ for family in FAMILIES if family not in compared] == []


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_updates_are_those_of_the_optimizer(name):
    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    optimizer = OPTIMIZERS[name](module.parameters())
    plan = read_optimizer(optimizer, {id(p): name for name, p in module.named_parameters()})
    layout = StateLayout.of(module, plan)
    parameters = {name: p.detach().clone() for name, p in module.named_parameters()}
    slots = initial_slots(plan, layout, parameters)
    for updates in range(3):
        gradients = {name: torch.randn_like(p) for name, p in module.named_parameters()}
        for name_, parameter in module.named_parameters():
            parameter.grad = gradients[name_].clone()
        optimizer.step()
        slots |= update_eagerly(plan, parameters, gradients, slots, updates)
        for name_, parameter in module.named_parameters():
            torch.testing.assert_close(parameters[name_], parameter.detach(), rtol=1e-12, atol=1e-14)
            for slot, expected in optimizer.state[parameter].items():
                if Slot(slot, name_) in slots:
                    torch.testing.assert_close(slots[Slot(slot, name_)], expected, rtol=1e-12, atol=1e-14)


def test_gradients_are_clipped_together_as_torch_does_it():
    module = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    plan = read_optimizer(optimizer, {id(p): name for name, p in module.named_parameters()})
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    gradients = {name: torch.randn_like(p) for name, p in before.items()}
    for name, parameter in module.named_parameters():
        parameter.grad = gradients[name].clone()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
    optimizer.step()
    update_eagerly(replace(plan, max_gradient_norm=0.5), before, gradients, {}, 0)
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(before[name], parameter.detach())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_whose_state_is_in_another_process_is_left_to_that_process(name):
    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()
    plan = read_optimizer(OPTIMIZERS[name](module.parameters()), {id(p): n for n, p in module.named_parameters()})
    whole = {name: p.detach().clone() for name, p in module.named_parameters()}
    part = dict(whole)
    slots = initial_slots(plan, StateLayout.of(module, plan), whole)
    gradients = {name: torch.randn_like(p) for name, p in whole.items()}
    plan = replace(plan, max_gradient_norm=0.5)
    update_eagerly(plan, whole, gradients, slots, 0)
    update_eagerly(plan, part, gradients, {slot: each for slot, each in slots.items() if slot.parameter == "bias"}, 0)
    # The norm of the gradients is that of all processes.
    assert torch.equal(part["bias"], whole["bias"])
    assert set(part) == ({"bias"} if slots else set(whole))
