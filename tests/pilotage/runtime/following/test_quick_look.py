"""What is compared before every call."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.runtime.following.quick_look import QuickLook


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.scale = nn.Linear(3, 2), nn.BatchNorm1d(2), 1.0
        self.handle = self.layer.register_forward_hook(lambda *_: None)

    def forward(self, x):
        return self.norm(self.layer(x)) * self.scale


MEMBERS = {
    "a part is added": lambda part: setattr(part, "other", nn.ReLU()),
    "a part is replaced by an equal one": lambda part: setattr(part, "norm", nn.BatchNorm1d(2)),
    "a parameter is replaced by an equal one": lambda part: setattr(
        part.layer, "weight", nn.Parameter(part.layer.weight.detach().clone())
    ),
    "a parameter is removed": lambda part: part.layer.register_parameter("bias", None),
    "a buffer is replaced by an equal one": lambda part: setattr(
        part.norm, "num_batches_tracked", part.norm.num_batches_tracked.clone()
    ),
    "the weights get another type": lambda part: part.double(),
}
HOOKS = {
    "a hook is added": lambda part: part.norm.register_forward_pre_hook(lambda *_: None),
    "a hook is removed": lambda part: part.handle.remove(),
}
VALUES = {
    "a mode is set": lambda part: part.norm.eval(),
    "a value is set": lambda part: setattr(part, "scale", 2.0),
    "forward is replaced": lambda part: setattr(part, "forward", lambda x: x),
}
CHANGES = {**MEMBERS, **HOOKS, **VALUES}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed_and_belongs_to_one_kind(change):
    part = Part()
    look = QuickLook(part)
    assert not look.differs()
    CHANGES[change](part)
    assert look.differs()
    assert (look.members.difference() is not None) == (change in MEMBERS)
    assert look.hooks.differ() == (change in HOOKS)


def test_a_hook_of_another_module_is_looked_at_once():
    part, other = Part(), nn.Linear(2, 2)
    look = QuickLook(part)
    other.register_forward_hook(lambda *_: None)
    assert look.differs()
    assert not look.hooks.differ()
    assert not look.differs()


def test_training_and_reading_weights_change_nothing():
    part = Part()
    look = QuickLook(part)
    part(torch.ones(4, 3)).sum().backward()
    with torch.no_grad():
        part.layer.weight.mul_(2)
    assert not look.differs()


def test_weights_that_are_newer_on_the_device_are_not_fetched():
    part = Part()
    step = pilotage.training(part, torch.optim.SGD(part.parameters(), lr=0.1), loss=nn.MSELoss(), backend="cpu")
    step(torch.ones(4, 3), torch.zeros(4, 2))
    look = QuickLook(part)
    assert not look.differs()
    assert step._executor.weights.trained.stale
