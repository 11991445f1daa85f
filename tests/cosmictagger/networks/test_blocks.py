"""Blocks equal the plain modules of torch that they are written for, plane after plane."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from cosmictagger.configuration.choices import ConvMode, Norm
from cosmictagger.networks.blocks import (
    LEAK,
    PLANES,
    Block,
    PlaneMixingBlock,
    Style,
    TransposedBlock,
    UpsamplingBlock,
    activated,
)

VOLUME = Style(conv_mode=ConvMode.conv_3D)
PLAIN = Style(normalization=Norm.none)


def stack(channels=4, events=2, height=6, width=8):
    """Three planes of some events, stacked along the batch."""
    return torch.randn(PLANES * events, channels, height, width)


def by_planes(function, x):
    return torch.cat([function(plane) for plane in x.chunk(PLANES)])


@pytest.mark.parametrize("bias", [True, False])
def test_a_block_in_training_normalises_plane_after_plane(bias):
    torch.manual_seed(0)
    block, x = Block(Style(bias=bias), 4, 5), stack()
    norm = nn.BatchNorm2d(5)
    expected = by_planes(
        lambda plane: F.leaky_relu(norm(F.conv2d(plane, block.conv.weight, block.conv.bias, padding=1)), LEAK), x
    )
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(block.norm.state_dict(), norm.state_dict(), rtol=1e-4, atol=1e-5)


def test_a_volume_has_the_statistics_of_all_its_planes():
    torch.manual_seed(0)
    block, x = Block(VOLUME, 4, 5), stack()
    norm = nn.BatchNorm2d(5)
    expected = F.leaky_relu(norm(F.conv2d(x, block.conv.weight.squeeze(2), block.conv.bias, padding=1)), LEAK)
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(block.norm.running_mean, norm.running_mean, rtol=1e-4, atol=1e-5)
    assert int(block.norm.num_batches_tracked) == 1


def test_evaluation_uses_the_running_statistics_and_leaves_them():
    torch.manual_seed(0)
    block = Block(Style(), 4, 5)
    block(stack())
    before = {name: value.clone() for name, value in block.state_dict().items()}
    block.eval()
    x = stack()
    convolved = F.conv2d(x, block.conv.weight, block.conv.bias, padding=1)
    expected = F.leaky_relu(block.norm(convolved), LEAK)
    torch.testing.assert_close(block(x), expected)
    torch.testing.assert_close(dict(block.state_dict()), before, rtol=0, atol=0)


@pytest.mark.parametrize("normalization", [Norm.none, Norm.layer])
def test_other_norms_know_no_planes(normalization):
    torch.manual_seed(0)
    block, x = Block(Style(normalization=normalization), 4, 5, size=1, padding=0), stack()
    y = F.conv2d(x, block.conv.weight, block.conv.bias)
    if normalization is Norm.layer:
        y = block.norm(y.movedim(1, -1)).movedim(-1, 1)
    torch.testing.assert_close(block(x), F.leaky_relu(y, LEAK))


def test_a_residual_is_added_before_the_activation():
    block, x = Block(PLAIN, 4, 4), stack()
    y = F.conv2d(x, block.conv.weight, block.conv.bias, padding=1)
    torch.testing.assert_close(block(x, residual=x), F.leaky_relu(y + x, LEAK))


def test_gradients_equal_those_of_plain_modules():
    torch.manual_seed(0)
    block, x = Block(Style(), 4, 5), stack().requires_grad_()
    weights = torch.randn(PLANES * 2, 5, 6, 8)
    (block(x) * weights).sum().backward()
    found = [x.grad, block.conv.weight.grad, block.norm.weight.grad, block.norm.bias.grad]
    norm, conv = nn.BatchNorm2d(5), nn.Conv2d(4, 5, 3, padding=1)
    conv.load_state_dict(block.conv.state_dict())
    other = x.detach().clone().requires_grad_()
    (by_planes(lambda plane: F.leaky_relu(norm(conv(plane)), LEAK), other) * weights).sum().backward()
    expected = [other.grad, conv.weight.grad, norm.weight.grad, norm.bias.grad]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_an_interpolation_after_the_convolution_equals_one_before_it():
    torch.manual_seed(0)
    block, x = UpsamplingBlock(PLAIN, 4, 3), stack()
    doubled = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    expected = F.leaky_relu(F.conv2d(doubled, block.conv.weight, block.conv.bias), LEAK)
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)


def test_a_volume_is_interpolated_to_the_nearest_pixel():
    torch.manual_seed(0)
    block, x = UpsamplingBlock(Style(conv_mode=ConvMode.conv_3D, normalization=Norm.none), 4, 3), stack()
    convolved = F.conv2d(x, block.conv.weight.squeeze(2), block.conv.bias)
    expected = F.leaky_relu(convolved.repeat_interleave(2, 2).repeat_interleave(2, 3), LEAK)
    torch.testing.assert_close(block(x), expected)


@pytest.mark.parametrize("mode", list(ConvMode))
def test_a_transposed_block_doubles_the_image(mode):
    torch.manual_seed(0)
    block, x = TransposedBlock(Style(conv_mode=mode, normalization=Norm.none), 4, 3), stack()
    weight = block.conv.weight.squeeze(2) if mode is ConvMode.conv_3D else block.conv.weight
    expected = F.leaky_relu(F.conv_transpose2d(x, weight, block.conv.bias, 2), LEAK)
    torch.testing.assert_close(block(x), expected)
    assert block(x).shape[-2:] == (12, 16)


def test_plane_mixing_is_a_convolution_over_the_planes():
    torch.manual_seed(0)
    block, x = PlaneMixingBlock(Style(conv_mode=ConvMode.conv_3D, normalization=Norm.none), 4, 5), stack()
    volume = torch.stack(x.chunk(PLANES), dim=2)
    mixed = F.conv3d(volume, block.conv.weight, block.conv.bias, padding=(1, 0, 0))
    expected = F.leaky_relu(torch.cat(mixed.unbind(2)), LEAK)
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)


def test_a_slope_of_one_means_no_activation():
    x = torch.tensor([-1.0, 2.0])
    assert activated(x, None, 1.0) is x
    torch.testing.assert_close(activated(x.clone(), torch.ones(2), 0.5), torch.tensor([0.0, 3.0]))


def test_simulated_integers_have_at_most_256_weights():
    torch.manual_seed(0)
    block, x = Block(Style(rounded=True, normalization=Norm.none), 4, 5), stack()
    exact = F.leaky_relu(F.conv2d(x, block.conv.weight, block.conv.bias, padding=1), LEAK)
    rounded = block(x)
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.1, atol=0.1)
    assert all(len(weight.unique()) <= 256 for weight in block.rounding.weights(block.conv.weight))
