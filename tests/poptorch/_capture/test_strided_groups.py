from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch


def normalise(layer, x, *, strided=True):
    options = poptorch.Options()
    options._Popart.set("groupNormStridedChannelGrouping", strided)
    return poptorch.inferenceModel(layer, options)(x)


def norm(affine=True):
    torch.manual_seed(0)
    layer = nn.GroupNorm(2, 6, affine=affine)
    if affine:
        nn.init.normal_(layer.weight)
        nn.init.normal_(layer.bias)
    return layer


def by_hand(layer, x):
    result = torch.empty_like(x)
    for group in range(layer.num_groups):
        part = x[:, group :: layer.num_groups]
        dims = tuple(range(1, x.dim()))
        mean, variance = part.mean(dims, keepdim=True), part.var(dims, keepdim=True, unbiased=False)
        result[:, group :: layer.num_groups] = (part - mean) / (variance + layer.eps).sqrt()
    if layer.affine:
        shape = (1, -1, *[1] * (x.dim() - 2))
        result = result * layer.weight.detach().view(shape) + layer.bias.detach().view(shape)
    return result


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 4, 5)])
def test_groups_take_every_nth_channel(affine, shape):
    layer, x = norm(affine), torch.randn(shape, generator=torch.Generator().manual_seed(1))
    result = normalise(layer, x)
    torch.testing.assert_close(result, by_hand(layer, x))
    assert not torch.allclose(result, layer(x))


def test_without_the_option_groups_are_those_of_torch():
    layer, x = norm(), torch.randn(2, 6, 4)
    torch.testing.assert_close(normalise(layer, x, strided=False), layer(x).detach())


def test_the_option_takes_nothing_but_a_switch():
    with pytest.raises(ValueError, match="groupNormStridedChannelGrouping"):
        normalise(norm(), torch.randn(2, 6, 4), strided="yes")
