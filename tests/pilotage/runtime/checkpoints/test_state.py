"""Checkpoints and states of another kind of optimizer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError
from pilotage.optim.lamb import Lamb

X, TARGET = torch.ones(4, 3), torch.zeros(4, 2)

KINDS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": torch.optim.Adam,
    "AdamW": torch.optim.AdamW,
    "RMSprop": torch.optim.RMSprop,
    "LAMB": Lamb,
}


def begin(kind):
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    step = pilotage.training(module, KINDS[kind](module.parameters()), loss=nn.MSELoss(), tier="graph")
    step(X, TARGET)
    return step


@pytest.mark.parametrize(
    ("saved", "present"), [("Adam", "AdamW"), ("AdamW", "Adam"), ("Adam", "LAMB"), ("SGD", "Adam")]
)
def test_a_checkpoint_of_another_kind_of_optimizer_is_refused_by_both_names(tmp_path, saved, present):
    begin(saved).save_checkpoint(tmp_path, 1)
    step = begin(present)
    before = step.state_dict()
    with pytest.raises(OptionError, match=rf"belongs to {saved}, and this model is trained with {present}:"):
        step.restore_checkpoint(tmp_path)
    assert all(torch.equal(value, before[name]) for name, value in step.state_dict().items())


@pytest.mark.parametrize(("saved", "present"), [("Adam", "AdamW"), ("AdamW", "LAMB"), ("SGD", "RMSprop")])
def test_a_state_of_another_kind_of_optimizer_is_refused_by_both_names(saved, present):
    state, step = begin(saved).optimizer_state_dict(), begin(present)
    with pytest.raises(OptionError, match=rf"belongs to {saved}, and this model is trained with {present}:"):
        step.load_optimizer_state_dict(state)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_of_optimizer_continues(tmp_path, kind):
    first, second = begin(kind), begin(kind)
    first.save_checkpoint(tmp_path, 1)
    assert second.restore_checkpoint(tmp_path).step == 1
    second.load_optimizer_state_dict(first.optimizer_state_dict())
    assert torch.equal(first(X, TARGET)[1], second(X, TARGET)[1])


def test_a_state_without_a_kind_is_compared_by_its_tensors():
    state, step = begin("SGD").optimizer_state_dict(), begin("Adam")
    del state["optimizer"]
    with pytest.raises(OptionError, match=r"does not fit the Adam .*exp_avg of module.weight is missing.*and 3 more"):
        step.load_optimizer_state_dict(state)


def test_a_state_of_other_shapes_is_refused():
    step = begin("Adam")
    state = step.optimizer_state_dict()
    state["slots"]["exp_avg/module.bias"] = torch.zeros(1)
    with pytest.raises(OptionError, match=r"exp_avg of module.bias is \(1,\) instead of \(2,\)"):
        step.load_optimizer_state_dict(state)
