import contextlib

import pytest
import torch
from torch import nn

import poptorch
from poptorch.poptorch_core import Error

IMAGES = torch.arange(32.0).reshape(2, 1, 4, 4)


class Model(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 2, 3), nn.ConvTranspose2d(1, 2, 3)
        self.run = forward

    def forward(self, x):
        return self.run(self, x)


def together(model, x):
    with poptorch.MultiConv().availableMemoryProportions([0.2, 0.3]).planType(poptorch.MultiConvPlanType.Serial):
        return model.first(x), model.second(x)


def test_planning_convolutions_together_does_not_change_results(compiled, tier):
    model = Model(together)
    results = compiled(model, tier=tier)(IMAGES)
    assert all(map(torch.equal, results, (model.first(IMAGES), model.second(IMAGES))))
    assert all(map(torch.equal, model(IMAGES), (model.first(IMAGES), model.second(IMAGES))))


def test_multi_convs_can_be_trained(compiled):
    class Training(Model):
        def forward(self, x):
            first, second = together(self, x)
            return poptorch.identity_loss(first.sum() + second.sum(), "none")

    model = Training(None)
    run = compiled(model, training=True)
    run(IMAGES)
    before = model.first.weight.clone()
    run(IMAGES)
    assert not torch.equal(model.first.weight, before)


def test_multi_convs_can_follow_each_other(compiled):
    def forward(model, x):
        with poptorch.MultiConv():
            first = model.first(x)
        with poptorch.MultiConv():
            return first, model.second(x)

    model = Model(forward)
    assert all(map(torch.equal, compiled(model)(IMAGES), (model.first(IMAGES), model.second(IMAGES))))


def test_a_multi_conv_can_follow_one_that_failed(compiled, tier):
    def forward(model, x):
        with contextlib.suppress(ArithmeticError), poptorch.MultiConv():
            raise ArithmeticError
        return together(model, x)

    model = Model(forward)
    assert torch.equal(compiled(model, tier=tier)(IMAGES)[0], model.first(IMAGES))


def test_multi_convs_cannot_be_nested(compiled, tier):
    def forward(model, x):
        with poptorch.MultiConv():
            return model.first(x), together(model, x)

    with pytest.raises(Error, match=r"Nested poptorch\.MultiConv is not supported"):
        compiled(Model(forward), tier=tier)(IMAGES)


def test_a_multi_conv_without_a_convolution_is_refused(compiled, tier):
    def forward(model, x):
        x = model.first(x)
        with poptorch.MultiConv():
            return x + 1

    with pytest.raises(Error, match="Unexpected end_multi_conv"):
        compiled(Model(forward), tier=tier)(IMAGES)


def test_nothing_is_checked_without_a_wrapper():
    model = Model(None)
    with poptorch.MultiConv(), poptorch.MultiConv():
        inside = model.first(IMAGES)
    assert torch.equal(inside, model.first(IMAGES))


def test_every_setting_can_be_chained():
    multi_conv = poptorch.MultiConv()
    assert multi_conv.availableMemoryProportions(0.5) is multi_conv
    assert multi_conv.partialsTypes(torch.half) is multi_conv
    assert multi_conv.partialsTypes([torch.half, torch.float32]) is multi_conv
    assert multi_conv.enableConvDithering(True) is multi_conv
    assert multi_conv.enableConvDithering((True, False)) is multi_conv
    assert multi_conv.planType(poptorch.MultiConvPlanType.Parallel) is multi_conv
    assert multi_conv.perConvReservedTiles(50) is multi_conv
    assert multi_conv.cycleBackOff(0.1) is multi_conv


@pytest.mark.parametrize(
    ("setting", "value", "error", "words"),
    [
        ("availableMemoryProportions", "a", ValueError, "Invalid available memory proportions"),
        ("availableMemoryProportions", [0.1, 1], ValueError, "Invalid available memory proportions"),
        ("partialsTypes", torch.int32, ValueError, "Invalid partials types"),
        ("partialsTypes", [torch.half, "half"], ValueError, "Invalid partials types"),
        ("enableConvDithering", 1, ValueError, "convolution dithering"),
        ("enableConvDithering", [True, 1], ValueError, "convolution dithering"),
        ("planType", 0, AssertionError, "Invalid plan type"),
        ("perConvReservedTiles", 1.5, AssertionError, "perConvReservedTiles"),
        ("cycleBackOff", 1, AssertionError, "cycleBackOff"),
    ],
)
def test_settings_are_checked(setting, value, error, words):
    with pytest.raises(error, match=words):
        getattr(poptorch.MultiConv(), setting)(value)
