from __future__ import annotations

import pytest
import torch
from torch import nn

from pilotage.program.layout import Slot
from pilotage.runtime.session import OptimizerState
from poptorch import optim
from poptorch.optim.handover import OptimizerReader
from poptorch.optim.state_names import from_ipu_state, to_ipu_state

KINDS = [
    (optim.SGD, {"lr": 0.1, "momentum": 0.9}, {"Accl1"}),
    (optim.Adam, {}, {"Accl1", "Accl2", "Step"}),
    (optim.AdamW, {}, {"Accl1", "Accl2", "Step"}),
    (optim.RMSprop, {}, {"Accl1"}),
    (optim.RMSprop, {"momentum": 0.5, "centered": True}, {"Accl1", "Accl2", "Accl3"}),
    (optim.LAMB, {}, {"Accl1", "Accl2", "Step"}),
    (optim.SGD, {"lr": 0.1}, set()),
]


def plan_and_state(kind, settings, *, fill, updates):
    module = nn.Sequential()
    module.add_module("lin", nn.Linear(2, 1))
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = OptimizerReader().plan(kind(module.parameters(), **settings), names)
    (group,) = plan.groups
    shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
    slots = {
        Slot(slot, name): torch.full(shapes[name], fill + position)
        for position, slot in enumerate(group.rule.slots)
        for name in group.parameters
    }
    return plan, OptimizerState(slots=slots, updates=updates)


def assert_same(one, other):
    assert one.updates == other.updates
    assert one.slots.keys() == other.slots.keys()
    for slot, tensor in one.slots.items():
        assert torch.equal(tensor, other.slots[slot])


@pytest.mark.parametrize(("kind", "settings", "prefixes"), KINDS)
def test_every_slot_has_a_name_for_each_parameter(kind, settings, prefixes):
    plan, state = plan_and_state(kind, settings, fill=1.0, updates=3.0)
    expected = {f"{prefix}___{name}" for prefix in prefixes for name in ("lin.weight", "lin.bias")}
    assert to_ipu_state(plan, state).keys() == expected


def test_first_moments_come_first_and_steps_are_counted():
    plan, state = plan_and_state(optim.Adam, {}, fill=1.0, updates=3.0)
    named = to_ipu_state(plan, state)
    assert torch.equal(named["Accl1___lin.weight"], torch.full((1, 2), 1.0))
    assert torch.equal(named["Accl2___lin.weight"], torch.full((1, 2), 2.0))
    assert named["Step___lin.bias"].item() == 3.0


@pytest.mark.parametrize(("kind", "settings", "prefixes"), [k for k in KINDS if k[0] not in (optim.SGD, optim.RMSprop)])
def test_a_state_with_counters_survives_a_round_trip(kind, settings, prefixes):
    plan, state = plan_and_state(kind, settings, fill=1.0, updates=3.0)
    _, fresh = plan_and_state(kind, settings, fill=0.0, updates=0.0)
    assert_same(from_ipu_state(plan, to_ipu_state(plan, state), fresh), state)


def test_a_nonzero_momentum_buffer_means_that_the_first_update_is_done():
    plan, state = plan_and_state(optim.SGD, {"lr": 0.1, "momentum": 0.9}, fill=1.0, updates=7.0)
    _, fresh = plan_and_state(optim.SGD, {"lr": 0.1, "momentum": 0.9}, fill=0.0, updates=0.0)
    assert from_ipu_state(plan, to_ipu_state(plan, state), fresh).updates == 1.0
    assert from_ipu_state(plan, to_ipu_state(plan, fresh), fresh).updates == 0.0


def test_an_incomplete_state_is_merged_with_the_current_one():
    plan, state = plan_and_state(optim.Adam, {}, fill=1.0, updates=3.0)
    named = {"Accl1___lin.bias": torch.tensor([9.0]), "lossScaleUpdateFactor": torch.tensor(1.0)}
    merged = from_ipu_state(plan, named, state)
    assert merged.slots[Slot("exp_avg", "lin.bias")].item() == 9.0
    assert torch.equal(merged.slots[Slot("exp_avg", "lin.weight")], state.slots[Slot("exp_avg", "lin.weight")])
    assert merged.updates == 3.0


def test_counts_that_differ_are_reported_and_the_largest_is_used(caplog):
    plan, state = plan_and_state(optim.Adam, {}, fill=1.0, updates=3.0)
    named = {"Step___lin.weight": torch.tensor(8.0), "Step___lin.bias": torch.tensor(5.0)}
    assert from_ipu_state(plan, named, state).updates == 8.0
    assert "Step___ of the parameters differ (5 to 8)" in caplog.text
