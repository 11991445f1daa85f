"""A module that runs as a program."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import CaptureError


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def trained(**options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, pilotage.training(model, optimizer, loss=nn.MSELoss(), tier="graph", **options)


def test_anchored_values_are_shown_after_each_call_and_outputs_stay_as_they_are():
    model, step = trained(anchors=["loss", "gradient of module.2.bias"])
    assert step.anchored == {}
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    expected = nn.functional.mse_loss(model(x), y)
    (gradient,) = torch.autograd.grad(expected, [model[2].bias])
    output, loss = step(x, y)
    assert output.shape == (5, 2)
    assert torch.equal(step.anchored["loss"], loss)
    assert torch.equal(loss, expected.detach())
    torch.testing.assert_close(step.anchored["gradient of module.2.bias"], gradient)


def test_the_names_of_anchors_are_listed_and_a_wrong_one_is_refused():
    _, step = trained()
    step(torch.randn(5, 3), torch.randn(5, 2))
    assert "loss" in step.tensor_names()
    _, other = trained(anchors=["lost"])
    with pytest.raises(CaptureError, match=r"no tensor named 'lost'.*loss"):
        other(torch.randn(5, 3), torch.randn(5, 2))


def test_another_optimizer_keeps_the_limit_on_gradients():
    model, step = trained(clip_grad_norm=1e-3)
    step(torch.randn(5, 3), torch.randn(5, 2))
    step.set_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    before = model[0].weight.detach().clone()
    step(torch.randn(5, 3), torch.randn(5, 2))
    assert 0 < (model[0].weight - before).norm() <= 1e-3
