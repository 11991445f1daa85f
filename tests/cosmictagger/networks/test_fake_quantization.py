"""Simulated 8-bit integers."""

from dataclasses import replace

import torch

from cosmictagger.configuration.network import A21
from cosmictagger.networks.fake_quantization import FakeQuantization
from cosmictagger.networks.uresnet import UResNet

SMALL = replace(A21, depth=1, n_initial_filters=4, bottleneck_deepest=4, blocks_deepest_layer=1, blocks_per_layer=1)


def test_weights_take_255_values_in_each_channel_and_keep_their_gradient():
    weight = torch.randn(2, 300, 3, 3, requires_grad=True)
    rounded = FakeQuantization().weights(weight)
    scale = weight.detach().abs().amax((1, 2, 3), keepdim=True) / 127
    torch.testing.assert_close(rounded.detach() / scale, (weight.detach() / scale).round(), rtol=0, atol=1e-3)
    rounded.sum().backward()
    assert torch.equal(weight.grad, torch.ones_like(weight))


def test_values_agree_with_torchs_fake_quantization():
    rounding, x = FakeQuantization(), torch.randn(4, 5, 6) * 3
    found = rounding.values(x)
    low, high = x.amin(), x.amax()
    scale = float((high - low) / 255)
    expected = torch.fake_quantize_per_tensor_affine(x, scale, round(float(-low) / scale), 0, 255)
    torch.testing.assert_close(found, expected)


def test_evaluation_keeps_the_range_of_training():
    rounding = FakeQuantization()
    rounding.values(torch.tensor([-1.0, 1.0]))
    rounding.values(torch.tensor([-2.0, 1.0]))
    torch.testing.assert_close(rounding.low, torch.tensor(-1.01))
    rounding.eval()
    torch.testing.assert_close(rounding.values(torch.tensor([100.0])), torch.tensor([1.0]), rtol=0, atol=0.01)
    torch.testing.assert_close(rounding.low, torch.tensor(-1.01))


def test_a_quantized_network_gives_similar_results_and_learns():
    torch.manual_seed(0)
    plain = UResNet(SMALL)
    rounded = UResNet(SMALL, quantization_aware=True)
    rounded.load_state_dict(plain.state_dict(), strict=False)
    image = torch.randn(1, 3, 8, 16)
    one, other = plain.stacked(image), rounded.stacked(image)
    assert not torch.equal(one, other)
    torch.testing.assert_close(one, other, rtol=0.1, atol=0.1)
    other.sum().backward()
    assert all(parameter.grad is not None for parameter in rounded.parameters())
