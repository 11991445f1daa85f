"""State whose memory forward exchanges is refused; what changes nothing is accepted."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import CaptureError

INPUTS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(6) % 3


class Model(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.layer, self.norm, self.act = nn.Linear(4, 3), nn.BatchNorm1d(4), act

    def forward(self, inputs):
        self.act(self, inputs)
        return self.layer(self.norm(inputs))


def double_data(model, inputs):
    model.layer.weight.data = model.layer.weight.data * 2


def data_of_the_input(model, inputs):
    model.norm.running_mean.data = inputs.mean(0)


def other_memory(model, inputs):
    with torch.no_grad():
        model.layer.weight.set_(model.layer.weight * 2)


def half_layer(model, inputs):
    model.layer.half()


def float64_model(model, inputs):
    model.to(torch.float64)


def same_data(model, inputs):
    model.layer.weight.data = model.layer.weight.data


def same_device(model, inputs):
    model.layer.weight.data = model.layer.weight.data.to(inputs.device)
    model.to(inputs.device)


def same_type(model, inputs):
    model.float()


def step_of(model, **options):
    return pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.functional.cross_entropy, **options
    )


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize(
    ("act", "name"),
    [
        (double_data, r"Parameter module\.layer\.weight"),
        (data_of_the_input, r"Buffer module\.norm\.running_mean"),
        (other_memory, r"Parameter module\.layer\.weight"),
        (half_layer, r"Parameter module\.layer\.weight"),
        (float64_model, r"Parameter module\.layer\.weight"),
    ],
)
def test_state_with_other_memory_is_refused(tier, act, name):
    model = Model(act)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(CaptureError, match=rf"{name} is reassigned within the model.*copy_\(src\)"):
        step_of(model, tier=tier, check="off")(INPUTS, LABELS)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_refusal_names_the_line():
    with pytest.raises(CaptureError, match=r"test_kept_memory\.py:\d+ in double_data"):
        step_of(Model(double_data), tier="graph", check="off")(INPUTS, LABELS)


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("act", [same_data, same_device, same_type])
def test_an_assignment_that_changes_nothing_is_accepted(twins, assert_same_state, tier, act):
    mine, theirs = twins(lambda: Model(act))
    step, plain = step_of(mine, tier=tier, check="first"), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        step(INPUTS, LABELS)
        plain.zero_grad()
        nn.functional.cross_entropy(theirs(INPUTS), LABELS).backward()
        plain.step()
    assert_same_state(mine, theirs)


def test_modules_convert_as_before_after_a_capture():
    model = Model(same_type)
    step_of(model, tier="graph")(INPUTS, LABELS)
    assert "_apply" not in vars(model.layer)
    assert model.half().layer.weight.dtype is torch.float16
