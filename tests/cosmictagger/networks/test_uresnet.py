"""The networks against their published counts and against a plain network written here, one plane after another."""

from dataclasses import replace

import pytest
import torch

from cosmictagger.configuration.choices import (
    Connection,
    ConvMode,
    DownSampling,
    GrowthRate,
    Norm,
    UpSampling,
)
from cosmictagger.configuration.network import PRESETS, URESNET
from cosmictagger.networks.uresnet import UResNet, build, parameter_count

pytestmark = pytest.mark.slow

COUNTS = {
    "uresnet": 18_382_131,
    "a21": 8_510_547,
    "a21_2023": 8_525_699,
    "scc21": 18_367_891,
    "polaris": 1_926_403,
    "uresnet3d": 18_381_459,
}
VARIANTS = [
    ({"residual": False}, 9_331_843),
    ({"connections": Connection.sum}, 18_334_531),
    ({"connections": Connection.none}, 18_334_531),
    ({"growth_rate": GrowthRate.multiplicative}, 45_291_155),
    ({"upsampling": UpSampling.convolutional}, 18_468_147),
    ({"downsampling": DownSampling.convolutional}, 18_468_147),
    ({"block_concat": True}, 18_266_771),
    ({"bias": False}, 18_375_008),
    ({"depth": 5}, 17_650_707),
    ({"n_initial_filters": 8}, 16_936_219),
    ({"conv_mode": ConvMode.conv_3D, "depth": 7}, 19_366_755),
]
SMALL = replace(URESNET, depth=2, n_initial_filters=4, bottleneck_deepest=6, blocks_final=1, blocks_deepest_layer=1)
OPTIONS = [
    {},
    {"residual": False, "connections": Connection.sum, "blocks_final": 0},
    {"connections": Connection.none, "bias": False},
    {"normalization": Norm.none},
    {"growth_rate": GrowthRate.multiplicative},
    {"upsampling": UpSampling.convolutional, "downsampling": DownSampling.convolutional},
    {"block_concat": True},
    {"conv_mode": ConvMode.conv_3D},
    {"conv_mode": ConvMode.conv_3D, "normalization": Norm.layer, "residual": False},
    {
        "conv_mode": ConvMode.conv_3D,
        "upsampling": UpSampling.convolutional,
        "downsampling": DownSampling.convolutional,
        "connections": Connection.sum,
    },
]


@pytest.mark.parametrize("preset", COUNTS)
def test_a_preset_has_as_many_parameters_as_the_original(preset):
    with torch.device("meta"):
        assert parameter_count(UResNet(PRESETS[preset])) == COUNTS[preset]


@pytest.mark.parametrize(("fields", "count"), VARIANTS, ids=lambda value: str(value))
def test_a_variant_has_as_many_parameters_as_the_original(fields, count):
    with torch.device("meta"):
        assert parameter_count(UResNet(replace(URESNET, **fields))) == count


def test_the_names_of_the_weights_are_the_originals():
    names = set(UResNet(SMALL).state_dict())
    assert names >= {
        "initial_convolution.conv.weight",
        "net_core.down_blocks.blocks.0.convolution_1.conv.weight",
        "net_core.main_module.main_module.main_module.bottleneck.conv.weight",
        "final_layer.blocks.0.convolution_2.conv.bias",
        "bottleneck.weight",
    }
    assert "net_core.down_blocks.blocks.0.conv.weight" in UResNet(replace(SMALL, residual=False)).state_dict()


def test_weights_are_initialised_by_xavier_without_bias():
    network = UResNet(SMALL)
    weight = network.initial_convolution.conv.weight
    bound = (6 / (25 + 25 * 4)) ** 0.5
    assert weight.abs().max() <= bound
    assert float(weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.2)
    assert not network.bottleneck.bias.any()


def gradients(network, outputs):
    for parameter in network.parameters():
        parameter.grad = None
    sum((output * (number + 1)).square().sum() for number, output in enumerate(outputs)).backward()
    return {name: parameter.grad.clone() for name, parameter in network.named_parameters()}


@pytest.mark.parametrize("fields", OPTIONS, ids=lambda fields: ",".join(fields) or "uresnet")
def test_stacked_planes_equal_separate_planes(fields, plain_network):
    options = replace(SMALL, **fields)
    torch.manual_seed(0)
    ours = build(options).double()
    ours.compute_type = torch.float64
    theirs = UResNet(options).double()
    theirs.load_state_dict(ours.state_dict())
    image = torch.randn(2, 3, 16, 24, dtype=torch.float64)
    found, expected = ours(image), plain_network(theirs, options)(image)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    one, other = gradients(ours, found), gradients(theirs, expected)
    for name in other:
        torch.testing.assert_close(one[name], other[name], rtol=1e-7, atol=1e-6, msg=name)
    for name, buffer in theirs.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer, rtol=1e-9, atol=1e-12, msg=name)
    ours.eval()
    theirs.eval()
    for one, other in zip(ours(image), plain_network(theirs, options)(image), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_planes_have_their_own_statistics():
    torch.manual_seed(0)
    network = build(replace(SMALL, block_concat=True))
    image = torch.randn(1, 3, 16, 24)
    alone = network(image)
    image[:, 1] = 100 * image[:, 1] + 7
    first, second, third = network(image)
    torch.testing.assert_close(first, alone[0])
    torch.testing.assert_close(third, alone[2])
    assert not torch.allclose(second, alone[1])


def test_bfloat16_computes_in_bfloat16_and_keeps_the_weights():
    network = build(SMALL, torch.bfloat16)
    scores = network.stacked(torch.randn(1, 3, 16, 24))
    assert scores.dtype is torch.bfloat16
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    scores.float().sum().backward()
    assert network.bottleneck.weight.grad.dtype is torch.float32


def test_a_single_event_of_a_volume_gives_the_plain_networks_loss_and_gradient(plain_network):
    """Its planes are stacked in a layout that torch's normalisation does not fill."""
    options = replace(SMALL, conv_mode=ConvMode.conv_3D)
    network = build(options, torch.float64).double().train()
    image = torch.rand(1, 3, 8, 16, dtype=torch.float64)
    found, expected = network(image), plain_network(network, options)(image)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    parameters = list(network.parameters())
    gradients = [
        torch.autograd.grad(sum(each.square().mean() for each in planes), parameters) for planes in (found, expected)
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)
