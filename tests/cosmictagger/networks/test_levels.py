"""The levels of the network: what they widen, halve, join and skip."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from cosmictagger.configuration.choices import Connection, ConvMode, DownSampling, GrowthRate, Norm, UpSampling
from cosmictagger.configuration.network import URESNET
from cosmictagger.networks.blocks import PLANES, Style
from cosmictagger.networks.levels import Concatenation, Core, Deepest, NoConnection, Sum, joined, split

SMALL = replace(URESNET, depth=2, n_initial_filters=4, bottleneck_deepest=6, blocks_deepest_layer=1, blocks_per_layer=1)


def core(depth=2, **options):
    torch.manual_seed(0)
    network = replace(SMALL, depth=depth, **options)
    style = Style(conv_mode=network.conv_mode, normalization=network.normalization)
    return Core(network, style, depth, network.n_initial_filters)


def stack(height=8, width=12, channels=4):
    torch.manual_seed(1)
    return torch.randn(PLANES, channels, height, width)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"downsampling": DownSampling.convolutional, "upsampling": UpSampling.convolutional},
        {"conv_mode": ConvMode.conv_3D},
        {"connections": Connection.sum, "growth_rate": GrowthRate.multiplicative},
        {"block_concat": True, "residual": False},
    ],
)
def test_a_core_keeps_the_shape_and_shows_each_level(options):
    x, levels = stack(), []
    result = core(**options)(x, levels)
    growth = 2 if options.get("growth_rate") is GrowthRate.multiplicative else None
    channels = [4, 8, 16] if growth else [4, 8, 12]
    assert result.shape == x.shape
    assert levels[-1] is result
    assert [tuple(level.shape) for level in levels] == [
        (PLANES, channels[depth], 8 >> depth, 12 >> depth) for depth in (2, 1, 0)
    ]


def test_every_weight_of_a_core_takes_part():
    network = core()
    network(stack()).square().sum().backward()
    weights = {name: weight for name, weight in network.named_parameters() if name.endswith("conv.weight")}
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in weights.values())


def test_planes_move_between_stack_and_channels_without_loss():
    x = torch.randn(PLANES * 2, 5, 3, 4)
    wide = joined(x)
    assert wide.shape == (2, PLANES * 5, 3, 4)
    torch.testing.assert_close(wide[0, 5:10], x[2])
    torch.testing.assert_close(split(wide), x, rtol=0, atol=0)


def reached(deepest, channels=4):
    """Which planes of the output depend on the first plane of one event."""
    x = stack(channels=channels).requires_grad_()
    y = deepest.eval()(x)
    return [bool(torch.autograd.grad(plane.sum(), x, retain_graph=True)[0][0].any()) for plane in y]


def test_the_deepest_block_joins_the_planes():
    assert reached(Deepest(SMALL, Style(normalization=Norm.none), 4)) == [True, True, True]


def test_separate_planes_stay_separate():
    apart = replace(SMALL, block_concat=True)
    assert reached(Deepest(apart, Style(normalization=Norm.none), 4)) == [True, False, False]


def test_a_volume_mixes_neighbouring_planes_twice():
    style = Style(conv_mode=ConvMode.conv_3D, normalization=Norm.none)
    assert reached(Deepest(SMALL, style, 4)) == [True, True, True]


def test_connections_concatenate_add_or_drop_the_skipped_features():
    x, skip = stack(), stack() + 1
    torch.testing.assert_close(Sum()(x, skip), x + skip)
    assert NoConnection()(x, skip) is x
    connection = Concatenation(Style(normalization=Norm.none), 4)
    expected = connection.bottleneck(torch.cat((x, skip), 1))
    torch.testing.assert_close(connection(x, skip), expected)


def test_features_are_skipped_before_the_blocks_and_in_volumes_behind_them():
    for options, skips_input in (({}, True), ({"conv_mode": ConvMode.conv_3D}, False)):
        network = core(depth=1, connections=Connection.sum, normalization=Norm.none, **options)
        # Nothing comes from below, so the skip is all there is.
        for parameter in network.upsample.parameters():
            parameter.data.zero_()
        x = stack()
        down = network.down_blocks(x)
        nothing = torch.zeros_like(x)
        expected = network.up_blocks(x) if skips_input else network.up_blocks(nothing) + down
        torch.testing.assert_close(network(x), expected)
