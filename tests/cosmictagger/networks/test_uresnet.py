"""The networks against their published counts and against a plain network written here, one plane after another."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

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


def test_pictures_start_from_xaviers_weights_without_bias():
    network = UResNet(SMALL)
    weight = network.initial_convolution.conv.weight
    bound = (6 / (25 + 25 * 4)) ** 0.5
    assert weight.abs().max() <= bound
    assert float(weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.2)
    assert not network.bottleneck.bias.any()


class Plain:
    """The network as the original writes it, with the modules of ours as holders of weights alone."""

    def __init__(self, network: UResNet, options) -> None:
        self.net, self.options = network, options
        self.volume = options.conv_mode is ConvMode.conv_3D

    def planes(self, image):
        if self.volume:
            return [image.unsqueeze(1)]
        return list(image.chunk(3, dim=1))

    def __call__(self, image):
        planes = [self.block(self.net.initial_convolution, x) for x in self.planes(image)]
        planes = self.level(self.net.net_core, planes)
        planes = [self.conv(self.net.bottleneck, self.series(self.net.final_layer, x)) for x in planes]
        return [planes[0][:, :, p] for p in range(3)] if self.volume else planes

    def conv(self, conv, x):
        kind = F.conv3d if self.volume else F.conv2d
        return kind(x, conv.weight, conv.bias, conv.stride, conv.padding)

    def block(self, block, x, activate=True):
        if isinstance(block.conv, nn.ConvTranspose2d | nn.ConvTranspose3d):
            kind = F.conv_transpose3d if self.volume else F.conv_transpose2d
            x = kind(x, block.conv.weight, block.conv.bias, block.conv.stride)
        else:
            x = self.conv(block.conv, x)
        if isinstance(block.norm, nn.LayerNorm):
            x = block.norm(x.movedim(1, -1)).movedim(-1, 1)
        elif block.norm is not None:
            x = block.norm(x)
        return F.leaky_relu(x, block.slope) if activate else x

    def series(self, series, x):
        for block in series.blocks:
            if self.options.residual:
                x = F.leaky_relu(self.block(block.convolution_2, self.block(block.convolution_1, x), False) + x, 0.01)
            else:
                x = self.block(block, x)
        return x

    def down(self, module, x):
        if self.options.downsampling is DownSampling.convolutional:
            return self.block(module, x)
        return self.block(module.bottleneck, F.max_pool3d(x, (1, 2, 2)) if self.volume else F.max_pool2d(x, 2))

    def up(self, module, x):
        if self.options.upsampling is UpSampling.convolutional:
            return self.block(module, x)
        if self.volume:
            return self.block(module.bottleneck, F.interpolate(x, scale_factor=(1, 2, 2), mode="nearest"))
        return self.block(module.bottleneck, F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False))

    def connect(self, module, x, skip):
        match self.options.connections:
            case Connection.sum:
                return x + skip
            case Connection.none:
                return x
            case Connection.concat:
                return self.block(module.bottleneck, torch.cat((x, skip), 1))

    def level(self, core, planes):
        if core.down_blocks is None:
            return self.deepest(core.main_module, planes)
        early, planes = planes, [self.series(core.down_blocks, x) for x in planes]
        late, planes = planes, [self.down(core.downsample, x) for x in planes]
        planes = [self.up(core.upsample, x) for x in self.level(core.main_module, planes)]
        if self.volume:
            planes = [self.series(core.up_blocks, x) for x in planes]
            return [self.connect(core.connection, x, skip) for x, skip in zip(planes, late, strict=True)]
        planes = [self.connect(core.connection, x, skip) for x, skip in zip(planes, early, strict=True)]
        return [self.series(core.up_blocks, x) for x in planes]

    def deepest(self, deepest, planes):
        def through(x):
            return self.block(deepest.unbottleneck, self.series(deepest.blocks, self.block(deepest.bottleneck, x)))

        if self.volume:
            return [through(planes[0])]
        if self.options.block_concat:
            narrow = [self.block(deepest.bottleneck, x) for x in planes]
            return [self.block(deepest.unbottleneck, self.series(deepest.blocks, x)) for x in narrow]
        return torch.chunk(through(torch.cat(planes, 1)), 3, 1)


def gradients(network, outputs):
    for parameter in network.parameters():
        parameter.grad = None
    sum((output * (number + 1)).square().sum() for number, output in enumerate(outputs)).backward()
    return {name: parameter.grad.clone() for name, parameter in network.named_parameters()}


@pytest.mark.parametrize("fields", OPTIONS, ids=lambda fields: ",".join(fields) or "uresnet")
def test_stacked_planes_compute_what_one_plane_after_another_would(fields):
    options = replace(SMALL, **fields)
    torch.manual_seed(0)
    ours = build(options).double()
    ours.compute_type = torch.float64
    theirs = UResNet(options).double()
    theirs.load_state_dict(ours.state_dict())
    image = torch.randn(2, 3, 16, 24, dtype=torch.float64)
    found, expected = ours(image), Plain(theirs, options)(image)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    one, other = gradients(ours, found), gradients(theirs, expected)
    for name in other:
        torch.testing.assert_close(one[name], other[name], rtol=1e-7, atol=1e-6, msg=name)
    for name, buffer in theirs.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer, rtol=1e-9, atol=1e-12, msg=name)
    ours.eval()
    theirs.eval()
    for one, other in zip(ours(image), Plain(theirs, options)(image), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_planes_have_statistics_of_their_own():
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
