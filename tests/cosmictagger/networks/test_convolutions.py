"""The accuracy of convolutions of stacked planes."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from cosmictagger.networks.convolutions import MANY_TERMS, convolve

KINDS = {"deepest": (256, 5), "widest": (112, 3), "ordinary": (32, 3)}


@pytest.mark.parametrize("kind", KINDS)
def test_convolutions_with_many_terms_are_as_accurate_as_contiguous_ones(kind):
    channels, size = KINDS[kind]
    torch.manual_seed(0)
    convolution = nn.Conv2d(channels, channels, size, padding=size // 2, bias=False)
    x = F.leaky_relu(torch.randn(1, channels, 5, 8))
    exact = F.conv2d(x.double(), convolution.weight.double(), padding=size // 2)
    contiguous = F.conv2d(x, convolution.weight, padding=size // 2)
    convolution.to(memory_format=torch.channels_last)
    found = convolve(convolution, x.contiguous(memory_format=torch.channels_last), None)
    assert (found - exact).norm() <= 2 * (contiguous - exact).norm()


def test_convolutions_with_few_terms_keep_channels_last():
    convolution = nn.Conv2d(8, 8, 3, padding=1).to(memory_format=torch.channels_last)
    assert convolution.weight[0].numel() < MANY_TERMS
    found = convolve(convolution, torch.randn(3, 8, 6, 4).contiguous(memory_format=torch.channels_last), None)
    assert found.is_contiguous(memory_format=torch.channels_last)
