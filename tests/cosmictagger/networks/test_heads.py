"""Heads of the network, which change nothing when they are off."""

from dataclasses import replace

import pytest
import torch

from cosmictagger.configuration.choices import ConvMode, GrowthRate, Precision
from cosmictagger.configuration.network import A21, URESNET
from cosmictagger.networks.uresnet import UResNet, parameter_count
from cosmictagger.training.precision import NUMBER_TYPES

SMALL = replace(A21, depth=3, n_initial_filters=2, bottleneck_deepest=4, blocks_deepest_layer=1, blocks_per_layer=1)
HEADS = {"event_label": True, "vertex": True}


@pytest.mark.parametrize("change", [{}, {"conv_mode": ConvMode.conv_3D}, {"growth_rate": GrowthRate.multiplicative}])
def test_heads_give_event_class_and_vertex(change):
    network = UResNet(replace(SMALL, **HEADS, **change))
    said = network(torch.randn(2, 3, 16, 32))
    assert [tuple(each.shape) for each in said["segmentation"]] == [(2, 3, 16, 32)] * 3
    assert said["event_label"].shape == (2, 4)
    assert [tuple(each.shape) for each in said["vertex"]] == [(2, 3, 8, 16)] * 3
    assert all(bool(((each >= 0) & (each <= 1)).all()) for each in said["vertex"])


@pytest.mark.parametrize("precision", [Precision.float64, Precision.float32, Precision.bfloat16])
def test_scores_of_the_heads_are_float32_at_least(precision):
    types = NUMBER_TYPES[precision]
    network = UResNet(replace(SMALL, **HEADS), compute_type=types.activations).to(types.weights)
    outputs = network.outputs(torch.randn(2, 3, 16, 32))
    wanted = torch.float64 if precision is Precision.float64 else torch.float32
    assert outputs.event.dtype is wanted
    assert outputs.vertex.dtype is wanted


def test_without_heads_nothing_changes():
    torch.manual_seed(1)
    plain = UResNet(SMALL).eval()
    torch.manual_seed(1)
    headed = UResNet(replace(SMALL, **HEADS)).eval()
    headed.load_state_dict(plain.state_dict(), strict=False)
    image = torch.randn(1, 3, 16, 32)
    for one, other in zip(plain(image), headed(image)["segmentation"], strict=True):
        assert torch.equal(one, other)
    assert parameter_count(UResNet(URESNET)) == 18_382_131


def test_the_event_heads_gradient_stops_at_the_features():
    network = UResNet(replace(SMALL, event_label=True))
    network.outputs(torch.randn(2, 3, 16, 32)).event.sum().backward()
    assert network.initial_convolution.conv.weight.grad is None
    assert network.event_classifier.last.weight.grad is not None
